// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

const (
	// patience bounds every wait.
	patience = 60 * time.Second
	// people is a group that may do anything a role can give.
	people = "people"
)

var (
	// binary is the assessor's, with failpoints.
	binary string
	// manifest is what the chart installs.
	manifest []*unstructured.Unstructured
	// shared is the cluster of all tests that do not break the API server itself.
	shared *cluster
)

// cluster is an API server with the chart's kinds, roles and policies, an audit log,
// and a kubeconfig with the executor's certificate.
type cluster struct {
	*guarded.Cluster
	server     *envtest.Environment
	audit      *remediation.AuditLog
	kubeconfig string
}

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults of the executor:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	directory, err := os.MkdirTemp("", "executorfaults")
	if err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	if binary, err = build(ctx, directory); err != nil {
		return 1, err
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	if manifest, err = apiserver.Render(ctx, helm, "--values", "testdata/values.yaml"); err != nil {
		return 1, err
	}
	if shared, err = startCluster(ctx, directory); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.server.Stop()) }()
	return m.Run(), nil
}

// build makes the binary that can be made to fail.
func build(ctx context.Context, directory string) (string, error) {
	path := filepath.Join(directory, "assessor")
	cmd := child.Bind(exec.CommandContext(ctx, "go", "build", "-tags", "failpoints", "-o", path, "github.com/plumbline-dev/plumbline/cmd/assessor"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the assessor with failpoints: %w\n%s", err, out)
	}
	return path, nil
}

// startCluster starts one that keeps its files in a directory; the caller stops its
// server.
func startCluster(ctx context.Context, directory string, options ...apiserver.Option) (*cluster, error) {
	audit, err := remediation.NewAuditLog(directory)
	if err != nil {
		return nil, err
	}
	s, err := apiserver.Start(append([]apiserver.Option{remediation.WithAudit(audit)}, options...)...)
	if err != nil {
		return nil, err
	}
	s.Config.QPS = -1
	c := &cluster{server: s, audit: audit, kubeconfig: filepath.Join(directory, "executor.kubeconfig")}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

func (c *cluster) install(ctx context.Context) error {
	admin, err := client.New(c.server.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	c.Cluster = &guarded.Cluster{Config: c.server.Config, Admin: admin, People: people, Patience: patience}
	if err := apiserver.Bind(ctx, admin, people, "cluster-admin", people); err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, manifest, "ConfigMap"); err != nil {
		return err
	}
	if err := apiserver.Enrol(c.server, c.kubeconfig, remediation.ExecutorUser, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace); err != nil {
		return err
	}
	return apiserver.AwaitStamp(ctx, admin, patience)
}

// long says whether what takes long is asked for.
func long() bool { return os.Getenv("PLUMBLINE_FAULTS") == "long" }

// takesLong skips a test that takes long unless it is asked for.
func takesLong(t *testing.T) {
	t.Helper()
	if !long() {
		t.Skip("it takes long; PLUMBLINE_FAULTS=long runs it (make faults)")
	}
}
