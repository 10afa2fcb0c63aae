// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"cmp"
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
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// The chart's service accounts.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	webhookUser  = "system:serviceaccount:plumbline-system:plumbline-webhook"
	// people is a group that may do anything a role can give.
	people = "people"
	// patience bounds every wait.
	patience = 60 * time.Second
)

var (
	// binaries is the directory of our programs.
	binaries string
	// manifest is what the chart installs by default.
	manifest []*unstructured.Unstructured
	// shared is the cluster of all tests that do not break the API server itself.
	shared *cluster
)

// cluster is an API server with the chart's kinds, roles and policies, and none
// of its pods or webhook configurations.
type cluster struct {
	*guarded.Cluster
	server *envtest.Environment
}

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	if binaries, err = os.MkdirTemp("", "faults"); err != nil {
		return 1, fmt.Errorf("making a directory for the binaries: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(binaries)) }()
	if err := server.Build(ctx, binaries, "webhook", "assessor"); err != nil {
		return 1, err
	}
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	if manifest, err = apiserver.Render(ctx, helm); err != nil {
		return 1, err
	}
	if shared, err = startCluster(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.server.Stop()) }()
	return m.Run(), nil
}

// startCluster starts one; the caller stops its server.
func startCluster(ctx context.Context) (*cluster, error) {
	s, err := apiserver.Start()
	if err != nil {
		return nil, err
	}
	c, err := install(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

// install makes a cluster of an API server. The Secret of the certificates is made
// by the chart and filled by the webhook.
func install(ctx context.Context, s *envtest.Environment) (*cluster, error) {
	admin, err := client.New(s.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	if err := apiserver.Bind(ctx, admin, people, "cluster-admin", people); err != nil {
		return nil, err
	}
	if err := apiserver.Install(ctx, admin, manifest, "Secret"); err != nil {
		return nil, err
	}
	if err := apiserver.AwaitStamp(ctx, admin, patience); err != nil {
		return nil, err
	}
	return &cluster{
		Cluster: &guarded.Cluster{Config: s.Config, Admin: admin, People: people, Patience: patience},
		server:  s,
	}, nil
}

// startProcess starts one of our binaries as a user, until the test ends.
func (c *cluster) startProcess(t *testing.T, name, user string, args ...string) *server.Process {
	t.Helper()
	return c.startProcessAt(t, "", name, user, args...)
}

// startProcessAt is startProcess with another address of the API server.
func (c *cluster) startProcessAt(t *testing.T, address, name, user string, args ...string) *server.Process {
	t.Helper()
	at := *c.Config
	at.Host = cmp.Or(address, at.Host)
	return startProcessOf(t, &at, name, user, args...)
}

// startProcessOf starts one with another way to the API server.
func startProcessOf(t *testing.T, config *rest.Config, name, user string, args ...string) *server.Process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := apiserver.WriteKubeconfig(kubeconfig, config, apiserver.Impersonating(config, user)); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig=" + kubeconfig, "--namespace=" + rendered.Namespace}, args...)
	p, err := server.Start(filepath.Join(binaries, name), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("what the %s said:\n%s", name, p.Said())
		}
	})
	return p
}
