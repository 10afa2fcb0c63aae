// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// Services are served where none of Plumbline's kinds is installed, and each kind has
// its effect from when it is, without a restart.
func TestKindsThatAreInstalledLater(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it has a cluster of its own
	isKind := func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }
	c := ownCluster(t, slices.DeleteFunc(slices.Clone(manifest), isKind))
	r := c.start(t, "one")
	s := c.shop(t, enabled)
	s.divided("web")
	slice := s.addressed("web", backend.Start(t, "plain"))
	s.awaitCopy()
	proxy := s.sidecar(r, "front-0", s.copied().Data[inject.CAKey], []string{"web"})
	backend.Answers(t, patience, proxy.front["web"], "200 plain")
	for _, text := range []string{"the cluster does not have all kinds of Plumbline", "the cluster does not have ABReleases, so requests are not divided; install the chart's kinds"} {
		poll.True(t, patience, "it says: "+text, func() bool { return strings.Contains(r.Said(), text) })
	}
	s.move(slice, backend.Start(t, "moved"))
	backend.Answers(t, patience, proxy.front["web"], "200 moved")

	c.kind(t, "abreleases.plumbline.dev", &v1alpha1.ABReleaseList{})
	release := s.release("web", 100)
	s.acknowledged(release, 100, "1/1")
	backend.Answers(t, patience, proxy.front["web"], "200 canary")
	always(t, proxy.front["web"], "200 canary")

	c.kind(t, "baselines.plumbline.dev", &v1alpha1.BaselineList{})
	b := &v1alpha1.Baseline{ObjectMeta: s.named("guarded-canary")}
	b.Spec.Target = v1alpha1.BaselineTarget{APIVersion: "v1", Kind: "Pod", Name: "web-canary"}
	s.create(b)
	b.Status.Quarantine = &v1alpha1.Quarantine{StartTime: metav1.Now(), By: "alice"}
	s.must(c.admin.Status().Update(t.Context(), b))
	backend.Answers(t, patience, proxy.front["web"], "200 stable")
	always(t, proxy.front["web"], "200 stable")
	if n := strings.Count(r.Said(), "the cluster does not have all kinds of Plumbline"); n != 1 {
		t.Errorf("it said %d times that kinds are missing", n)
	}
	proxy.connected(true)
	if strings.Contains(r.Said(), "leading ended") {
		t.Error("it has lost its lease meanwhile")
	}
}

// kind installs one of Plumbline's, and waits until it is served.
func (c *cluster) kind(t *testing.T, name string, list client.ObjectList) {
	t.Helper()
	i := slices.IndexFunc(manifest, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
	if err := c.admin.Create(t.Context(), manifest[i].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, patience, name+" is served", func() error { return c.admin.List(t.Context(), list) })
}
