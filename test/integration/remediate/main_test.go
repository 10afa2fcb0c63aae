// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	// assessorUser is the chart's service account of the assessor.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait.
	patience = 20 * time.Second
	// people is a group that may do anything a role can give.
	people = "people"
)

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  client.Client
	// cluster is where the worlds are.
	cluster *guarded.Cluster
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of policies:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	server, err := apiserver.Start()
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	config.QPS = -1
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := install(ctx, helm); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// install puts the chart's kinds, roles and policies in place, and none of its pods.
func install(ctx context.Context, helm *rendered.Client) (err error) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	cluster = &guarded.Cluster{Config: config, Admin: admin, People: people, Patience: patience}
	objects, err := apiserver.Render(ctx, helm, "--values", "testdata/values.yaml")
	if err != nil {
		return err
	}
	if err := apiserver.Bind(ctx, admin, people, "cluster-admin", people); err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, objects); err != nil {
		return err
	}
	return apiserver.AwaitStamp(ctx, admin, patience)
}
