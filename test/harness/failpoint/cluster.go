// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// Patience bounds every wait.
	Patience = 60 * time.Second
	// people is a group that may do anything a role can give.
	people = "people"
)

// installation is what each cluster of a process has.
type installation struct {
	// binary is the assessor's, with failpoints.
	binary string
	// manifest is what the chart installs.
	manifest []*unstructured.Unstructured
}

// Cluster is an API server with the chart's kinds, roles and policies, an audit log,
// and a kubeconfig with the executor's certificate.
type Cluster struct {
	*guarded.Cluster
	installation
	// Server is the API server.
	Server     *envtest.Environment
	audit      *remediation.AuditLog
	kubeconfig string
}

// Main runs the tests of a package on one cluster. It is told to ready before the first
// test begins. The result is what TestMain exits with.
func Main(m *testing.M, ready func(*Cluster)) int {
	code, err := run(m, ready)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults of the executor:", err)
		return 1
	}
	return code
}

func run(m *testing.M, ready func(*Cluster)) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	directory, err := os.MkdirTemp("", "failpoint")
	if err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	if err := server.BuildWithTags(ctx, directory, "failpoints", "assessor"); err != nil {
		return 1, err
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	manifest, err := apiserver.Render(ctx, helm, "--values", testdata("values.yaml"))
	if err != nil {
		return 1, err
	}
	c, err := startCluster(ctx, installation{filepath.Join(directory, "assessor"), manifest}, directory)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Server.Stop()) }()
	ready(c)
	return m.Run(), nil
}

// testdata is the path of a file of this package, for tests of other packages.
func testdata(name string) string {
	return filepath.Join(rendered.RepositoryDir(), "test", "harness", "failpoint", "testdata", name)
}

// StartAnother starts a cluster of one test, with options of its API server.
func (c *Cluster) StartAnother(t *testing.T, options ...apiserver.Option) *Cluster {
	t.Helper()
	own, err := startCluster(t.Context(), c.installation, t.TempDir(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return own
}

// startCluster starts one that keeps its files in a directory; the caller stops its
// server.
func startCluster(ctx context.Context, of installation, directory string, options ...apiserver.Option) (*Cluster, error) {
	audit, err := remediation.NewAuditLog(directory)
	if err != nil {
		return nil, err
	}
	s, err := apiserver.Start(append([]apiserver.Option{remediation.WithAudit(audit)}, options...)...)
	if err != nil {
		return nil, err
	}
	s.Config.QPS = -1
	c := &Cluster{installation: of, Server: s, audit: audit, kubeconfig: filepath.Join(directory, "executor.kubeconfig")}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

func (c *Cluster) install(ctx context.Context) error {
	admin, err := client.New(c.Server.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	c.Cluster = &guarded.Cluster{Config: c.Server.Config, Admin: admin, People: people, Patience: Patience}
	if err := apiserver.Bind(ctx, admin, people, "cluster-admin", people); err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, c.manifest, "ConfigMap"); err != nil {
		return err
	}
	if err := apiserver.Enrol(c.Server, c.kubeconfig, remediation.ExecutorUser, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace); err != nil {
		return err
	}
	return apiserver.AwaitStamp(ctx, admin, Patience)
}

// Long says whether what takes long is asked for.
func Long() bool { return os.Getenv("PLUMBLINE_FAULTS") == "long" }

// SkipUnlessLong skips a test that takes long unless it is asked for.
func SkipUnlessLong(t *testing.T) {
	t.Helper()
	if !Long() {
		t.Skip("it takes long; PLUMBLINE_FAULTS=long runs it (make faults)")
	}
}
