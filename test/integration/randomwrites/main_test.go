// SPDX-License-Identifier: Apache-2.0

//go:build integration

package randomwrites

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/inprocess"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait.
	patience = 30 * time.Second
)

var (
	config     *rest.Config
	admin      client.Client
	cluster    *guarded.Cluster
	kubeconfig []byte
)

func TestMain(m *testing.M) {
	os.Exit(guarded.Main(m, patience, func(c *guarded.Cluster, server *envtest.Environment) {
		cluster, config, admin, kubeconfig = c, c.Config, c.Admin, server.KubeConfig
	}))
}

// startAssessor runs an assessor until the test ends or the process is halted.
func startAssessor(t *testing.T) *inprocess.Process {
	t.Helper()
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: assessorUser}
	setup := assessor.Setup{
		Config: own, Namespace: rendered.Namespace, Retention: time.Hour,
		Rules:    specguard.Config{Key: []byte("a key of the tests"), Grace: 200 * time.Millisecond},
		Registry: prometheus.NewRegistry(), Log: inprocess.Log(t), Clock: clock.RealClock{},
	}
	return inprocess.Start(t, "assessor", patience, func(ctx context.Context, ready func()) error {
		setup.Ready = ready
		return assessor.Run(ctx, setup)
	})
}

// startControllers runs the controllers that write to the kinds of this test.
func startControllers(t *testing.T) {
	t.Helper()
	directory := t.TempDir()
	file := filepath.Join(directory, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	controllers, err := apiserver.StartControllers(directory, file, "deployment-controller", "replicaset-controller",
		"statefulset-controller", "daemonset-controller", "cronjob-controller", "job-controller", "garbage-collector-controller", "serviceaccount-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controllers.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("%v; the controllers said %s", err, controllers.Said())
		}
	})
}
