// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const patience = time.Minute

var (
	binary   string
	manifest []*unstructured.Unstructured
	shared   *cluster
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the installed discovery server:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	directory, err := os.MkdirTemp("", "xds")
	if err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	if err := server.Build(ctx, directory, "xds"); err != nil {
		return 1, err
	}
	binary = filepath.Join(directory, "xds")
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	objects, err := apiserver.Render(ctx, helm, "--set", "mesh.enabled=true", "--set", "redis.enabled=false")
	if err != nil {
		return 1, err
	}
	manifest = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition" && !strings.HasPrefix(o.GetName(), "plumbline-xds")
	})
	if shared, err = newCluster(ctx, directory); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.server.Stop()) }()
	return m.Run(), nil
}

// cluster is an API server with what the chart installs for the discovery server.
type cluster struct {
	server *envtest.Environment
	admin  client.Client
	// kubeconfig is that of the discovery server's service account.
	kubeconfig string
}

// newCluster starts one; the caller stops its server.
func newCluster(ctx context.Context, directory string, options ...apiserver.Option) (*cluster, error) {
	s, err := apiserver.Start(options...)
	if err != nil {
		return nil, err
	}
	c := &cluster{server: s, kubeconfig: filepath.Join(directory, "xds.kubeconfig")}
	if err := c.install(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

func (c *cluster) install(ctx context.Context) (err error) {
	if c.admin, err = client.New(c.server.Config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if err := apiserver.Install(ctx, c.admin, manifest, "Secret", "ConfigMap"); err != nil {
		return err
	}
	const account = "system:serviceaccount:" + rendered.Namespace + ":plumbline-xds"
	return apiserver.Enrol(c.server, c.kubeconfig, account, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace)
}

// ownCluster is a cluster of one test, whose API server can be stopped and started.
func ownCluster(t *testing.T) *cluster {
	t.Helper()
	ownDirectory := func(s *envtest.Environment) {
		// With a directory of its own it keeps its certificates over a restart.
		s.ControlPlane.GetAPIServer().CertDir = t.TempDir()
		s.ControlPlane.Etcd = &envtest.Etcd{}
	}
	c, err := newCluster(t.Context(), t.TempDir(), ownDirectory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return c
}
