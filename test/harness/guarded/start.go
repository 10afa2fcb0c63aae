// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	// People is the group of the people of a [Cluster] that was started here.
	People = "people"
	// values are those of the chart, in the directory of the package that is tested.
	values = "testdata/values.yaml"
	// allTests is how long the tests of a package may take, their start included.
	allTests = 15 * time.Minute
)

// Main runs the tests of a package, all on one API server with the chart in place:
// its kinds, roles and policies by the package's testdata/values.yaml, and none of its
// pods. It is told to ready before the first test begins. The result is what TestMain
// exits with.
func Main(m *testing.M, patience time.Duration, ready func(*Cluster, *envtest.Environment), options ...apiserver.Option) int {
	code, err := run(m, patience, ready, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests:", err)
		return 1
	}
	return code
}

func run(m *testing.M, patience time.Duration, ready func(*Cluster, *envtest.Environment), options []apiserver.Option) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), allTests)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	server, err := apiserver.Start(options...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	cluster, err := install(ctx, helm, server)
	if err != nil {
		return 1, err
	}
	cluster.Patience = patience
	if err := apiserver.AwaitStamp(ctx, cluster.Admin, patience); err != nil {
		return 1, err
	}
	if err := apiserver.AwaitPolicies(ctx, cluster.Admin, patience); err != nil {
		return 1, err
	}
	ready(cluster, server)
	return m.Run(), nil
}

// install puts the chart in place, and makes the people's group.
func install(ctx context.Context, helm *rendered.Client, server *envtest.Environment) (*Cluster, error) {
	if err := errors.Join(v1alpha1.AddToScheme(scheme.Scheme), apiextensions.AddToScheme(scheme.Scheme)); err != nil {
		return nil, fmt.Errorf("adding kinds to the scheme: %w", err)
	}
	server.Config.QPS = -1
	admin, err := client.New(server.Config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	objects, err := apiserver.Render(ctx, helm, "--values", values)
	if err != nil {
		return nil, err
	}
	if err := apiserver.Bind(ctx, admin, People, "cluster-admin", People); err != nil {
		return nil, err
	}
	if err := apiserver.Install(ctx, admin, objects); err != nil {
		return nil, err
	}
	return &Cluster{Config: server.Config, Admin: admin, People: People}, nil
}
