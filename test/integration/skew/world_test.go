// SPDX-License-Identifier: Apache-2.0

//go:build integration

package skew

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

const (
	// formerChart is the chart of the former release.
	formerChart = "testdata/former.tgz"
	// patience bounds every wait. On two processors with a load of 60, Helm installed the
	// chart in more than a minute; alone it needs three seconds.
	patience = 3 * time.Minute
	// people is a group that may do anything a role can give, and platform a user of it.
	people   = "people"
	platform = "platform"
	// shop is the namespace of the objects.
	shop = "shop"
)

// world is an API server with the former release of the chart, which Helm installed.
type world struct {
	t       *testing.T
	server  *envtest.Environment
	helm    *rendered.Client
	cluster *guarded.Cluster
}

// newWorld starts an API server, and has Helm install the former release. The API server
// ends with the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	must(t, v1alpha1.AddToScheme(scheme.Scheme))
	must(t, apiextensions.AddToScheme(scheme.Scheme))
	w := &world{t: t}
	var err error
	w.server, err = apiserver.Start()
	must(t, err)
	t.Cleanup(func() {
		if err := w.server.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	w.server.Config.QPS = -1
	admin, err := client.New(w.server.Config, client.Options{Scheme: scheme.Scheme})
	must(t, err)
	w.cluster = &guarded.Cluster{Config: w.server.Config, Admin: admin, People: people, Patience: patience}
	must(t, apiserver.Bind(t.Context(), admin, people, "cluster-admin", people))
	must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}))
	w.installFormer()
	return w
}

func (w *world) installFormer() {
	w.t.Helper()
	helm, err := rendered.Find(w.t.Context())
	must(w.t, err)
	helm.Kubeconfig = filepath.Join(w.t.TempDir(), "admin.kubeconfig")
	must(w.t, os.WriteFile(helm.Kubeconfig, w.server.KubeConfig, 0o600))
	w.helm = helm
	w.runHelm("install", rendered.Release, formerChart, "--create-namespace", "--values", "testdata/values.yaml")
}

// upgradeRelease upgrades the release to the present chart.
func (w *world) upgradeRelease() {
	w.t.Helper()
	w.runHelm("upgrade", rendered.Release, rendered.ChartDir(), "--reset-then-reuse-values")
}

// rollBackRelease rolls the release back to the revision before.
func (w *world) rollBackRelease() {
	w.t.Helper()
	w.runHelm("rollback", rendered.Release)
}

func (w *world) runHelm(args ...string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	_, err := w.helm.Run(ctx, args...)
	must(w.t, err)
}

// schemas reads the schemas of Plumbline's kinds that the API server has, by kind.
func (w *world) schemas() map[string]*apiextensions.JSONSchemaProps {
	w.t.Helper()
	var list apiextensions.CustomResourceDefinitionList
	must(w.t, w.cluster.Admin.List(w.t.Context(), &list))
	schemas := map[string]*apiextensions.JSONSchemaProps{}
	for i := range list.Items {
		if spec := &list.Items[i].Spec; spec.Group == v1alpha1.GroupVersion.Group {
			schemas[spec.Names.Kind] = spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	return schemas
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
