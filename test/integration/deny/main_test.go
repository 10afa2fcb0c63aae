// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

const (
	// assessor is the user name of the assessor's service account.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait: a new policy bites after about a second, a new
	// kind as parameter after up to half a minute.
	patience = 60 * time.Second
)

// One API server serves all tests; each works in a namespace of its own.
var (
	config     *rest.Config
	admin      client.Client
	kubeconfig string
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of Deny:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(klog.Background())
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		return 1, fmt.Errorf("adding our kinds to the scheme: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
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
	directory, err := os.MkdirTemp("", "deny")
	if err != nil {
		return 1, fmt.Errorf("making a directory for the kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	kubeconfig = filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		return 1, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	controllers, err := apiserver.StartControllers(directory, kubeconfig,
		"clusterrole-aggregation-controller", "deployment-controller", "replicaset-controller", "garbage-collector-controller",
		"namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller", "horizontal-pod-autoscaler-controller")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, controllers.Stop(context.WithoutCancel(ctx))) }()
	if err := setUp(ctx, helm); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// setUp installs what works without pods: kinds, roles, policies.
func setUp(ctx context.Context, helm *rendered.Client) (err error) {
	if admin, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	objects, err := apiserver.Render(ctx, helm, "--values", "testdata/values.yaml")
	if err != nil {
		return err
	}
	if err := apiserver.Install(ctx, admin, objects); err != nil {
		return err
	}
	if err := apiserver.Bind(ctx, admin, "roots", "cluster-admin", "roots"); err != nil {
		return err
	}
	probe := guard("first-of-all", "no-such-namespace")
	if err := admin.Create(ctx, probe); err != nil {
		return fmt.Errorf("creating a guard: %w", err)
	}
	return awaitEnforced(ctx, probe)
}

// awaitEnforced waits until the API server proves that a guard is in force.
func awaitEnforced(ctx context.Context, g *v1alpha1.ClusterSpecGuard) error {
	return waits.Until(ctx, patience, "the guard "+g.Name+" is in force", func(ctx context.Context) error {
		if err := probe(ctx, g); !isProof(err, g) {
			return fmt.Errorf("the answer to a probe is no proof: %v", err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}
