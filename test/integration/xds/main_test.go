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
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	patience = time.Minute
	// starting bounds the start of a replica, which lists every kind. On two processors with a load of 60, the caches
	// took 36 s, and single answers of the API server more than five.
	starting = 3 * time.Minute
)

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
	if manifest, err = render(ctx); err != nil {
		return 1, err
	}
	if shared, err = newCluster(ctx, directory, manifest); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.server.Stop()) }()
	return m.Run(), nil
}

// render has what the chart installs for the discovery server, with further values.
func render(ctx context.Context, values ...string) ([]*unstructured.Unstructured, error) {
	helm, err := rendered.Find(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"--set", "mesh.enabled=true", "--set", "redis.enabled=false"}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	objects, err := apiserver.Render(ctx, helm, args...)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "CustomResourceDefinition" && !strings.HasPrefix(o.GetName(), "plumbline-xds")
	}), err
}

// cluster is an API server with what the chart installs for the discovery server.
type cluster struct {
	server *envtest.Environment
	admin  client.Client
	// kubeconfig is that of the discovery server's service account.
	kubeconfig string
}

// newCluster starts one with objects of the chart; the caller stops its server.
func newCluster(ctx context.Context, directory string, objects []*unstructured.Unstructured, options ...apiserver.Option) (*cluster, error) {
	s, err := apiserver.Start(options...)
	if err != nil {
		return nil, err
	}
	c := &cluster{server: s, kubeconfig: filepath.Join(directory, "xds.kubeconfig")}
	if err := c.install(ctx, objects); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return c, nil
}

func (c *cluster) install(ctx context.Context, objects []*unstructured.Unstructured) (err error) {
	types, err := elected.Kinds()
	if err != nil {
		return err
	}
	if c.admin, err = client.New(c.server.Config, client.Options{Scheme: types}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if err := apiserver.Install(ctx, c.admin, objects, "Secret", "ConfigMap"); err != nil {
		return err
	}
	const account = "system:serviceaccount:" + rendered.Namespace + ":plumbline-xds"
	return apiserver.Enrol(c.server, c.kubeconfig, account, "system:serviceaccounts", "system:serviceaccounts:"+rendered.Namespace)
}

// ownCluster is a cluster of one test, whose API server can be stopped and started.
func ownCluster(t *testing.T, objects []*unstructured.Unstructured, options ...apiserver.Option) *cluster {
	t.Helper()
	c, err := newCluster(t.Context(), t.TempDir(), objects, append(options, apiserver.CertificatesIn(t.TempDir()))...)
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
