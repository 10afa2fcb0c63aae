// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// installed is an API server of a test's own on which the chart is installed,
// policies included: those of the others must not be stamped.
type installed struct {
	t       *testing.T
	config  *rest.Config
	admin   client.Client
	cluster *harness.Cluster
	helm    *rendered.Client
	dir     string
}

func startServer(t *testing.T) *installed {
	t.Helper()
	server, err := apiserver.Start()
	must(t, err)
	config := server.Config
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	config.QPS = -1
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	helm, err := rendered.Find(t.Context())
	must(t, err)
	dir := t.TempDir()
	helm.Kubeconfig = filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(helm.Kubeconfig, server.KubeConfig, 0o600))
	return &installed{
		t: t, config: config, admin: admin, helm: helm, dir: dir,
		cluster: &harness.Cluster{Kubeconfig: helm.Kubeconfig, Path: binDir},
	}
}

// install installs the chart. No pod runs here, so the webhooks are taken out:
// each write would wait for them.
func (s *installed) install() {
	s.t.Helper()
	_, err := s.helm.Run(s.t.Context(), "install", rendered.Release, rendered.ChartDir(), "--create-namespace")
	must(s.t, err)
	s.takeWebhooksOut()
	s.awaitStamps()
}

func (s *installed) takeWebhooksOut() {
	s.t.Helper()
	_, err := s.cluster.Kubectl(s.t.Context(), "delete", "mutatingwebhookconfiguration,validatingwebhookconfiguration", "plumbline")
	must(s.t, err)
}

// awaitStamps waits until the writer policy works, and then for as long as adopt
// takes no stamp as proof.
func (s *installed) awaitStamps() {
	s.t.Helper()
	started := time.Now()
	err := harness.Eventually(s.t.Context(), "stamps", time.Minute, func(ctx context.Context) (bool, string) {
		probe := webDeployment("default", "probe")
		if err := s.admin.Create(ctx, probe, client.DryRunAll); err != nil {
			return false, err.Error()
		}
		// adopt leaves three seconds to a new policy, in whole ones.
		return probe.Annotations[v1alpha1.AnnotationWriter] != "" && time.Since(started) > 5*time.Second, "no stamp"
	})
	must(s.t, err)
}

// as is a client of a user who may do everything.
func (s *installed) as(user string) client.Client {
	s.t.Helper()
	c, err := apiserver.As(s.config, user, "system:masters")
	must(s.t, err)
	return c
}

// kubectl runs it as a user who may do everything.
func (s *installed) kubectl(user string, args ...string) {
	s.t.Helper()
	_, err := s.cluster.Kubectl(s.t.Context(), append(args, "--as", user, "--as-group", "system:masters")...)
	must(s.t, err)
}

// nextSecond waits for the clock: managedFields have whole seconds, and what
// happened within one has no order.
func (s *installed) nextSecond() {
	s.t.Helper()
	now := metav1.Now().Rfc3339Copy()
	err := harness.Eventually(s.t.Context(), "the next second", 5*time.Second, func(context.Context) (bool, string) {
		return metav1.Now().Rfc3339Copy().After(now.Time), "the same second"
	})
	must(s.t, err)
}

// webDeployment runs one container.
func webDeployment(namespace, name string) *appsv1.Deployment {
	return guarded.Workload(namespace, name, "nginx:1.27", 1)
}
