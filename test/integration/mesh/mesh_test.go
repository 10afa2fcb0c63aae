// SPDX-License-Identifier: Apache-2.0

//go:build integration

package mesh

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/discovery"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/envoy"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestASidecarFollowsTheServicesOfItsNamespace(t *testing.T) {
	s := newShop(t)
	slice := s.service("web", backend.Start(t, "one"))
	d := discover(t)
	_, fronts := s.proxy(d, s.pod("front-0", nil), "web", "later")
	backend.Answers(t, patience, fronts["web"], "200 one")
	backend.Answers(t, patience, fronts["later"], "503 ") // there is no such service yet

	changed := s.slice("web", 0, backend.Start(t, "two"))
	changed.ResourceVersion = slice.ResourceVersion
	s.must(admin.Update(t.Context(), changed))
	backend.Answers(t, patience, fronts["web"], "200 two")

	s.service("later", backend.Start(t, "three"))
	backend.Answers(t, patience, fronts["later"], "200 three")

	s.must(admin.Delete(t.Context(), changed))
	backend.Answers(t, patience, fronts["web"], "503 no healthy upstream")
	s.must(admin.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(s.namespace)))
	backend.Answers(t, patience, fronts["later"], "503 no healthy upstream")
}

// An Envoy opens no listener, and its pod does not start, before it has heard which
// clusters and listeners there are; also when there are none.
func TestASidecarStartsWhereNothingIsManaged(t *testing.T) {
	s := newShop(t)
	_, fronts := s.proxy(discover(t), s.pod("front-0", nil), "none")
	backend.Answers(t, patience, fronts["none"], "503 ")
}

// What a proxy has it keeps, whatever becomes of the server.
func TestASidecarGoesOnWhileTheServerIsAway(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	var fronts map[string]string
	t.Run("while it is there", func(t *testing.T) {
		outer := s.t
		d := discover(t)
		_, fronts = (&shop{outer, s.namespace}).proxy(d, s.pod("front-0", nil), "web")
		backend.Answers(t, patience, fronts["web"], "200 one")
	})
	for range 20 {
		if got := backend.Get(t, fronts["web"]); got != "200 one" {
			t.Fatalf("it answers %q", got)
		}
	}
}

func TestASidecarSeesAnotherNamespaceOnlyIfItsPodSaysSo(t *testing.T) {
	theirs, ours := newShop(t), newShop(t)
	theirs.service("pay", backend.Start(t, "paid"))
	theirs.exports("pay", ours.namespace)
	ours.service("own", backend.Start(t, "own"))
	d := discover(t)
	asks, _ := ours.proxy(d, ours.pod("asks", map[string]string{discovery.UpstreamsAnnotation: theirs.namespace + "/pay"}))
	poll.True(t, patience, "who asks has it", func() bool { return ours.uses(asks, theirs.namespace+"/pay") })
	quiet, _ := ours.proxy(d, ours.pod("quiet", nil))
	poll.True(t, patience, "the other one has the service of its own namespace", func() bool { return ours.uses(quiet, ours.namespace+"/own") })
	if ours.knows(quiet, theirs.namespace+"/pay") {
		t.Error("a pod that does not ask for it sees the service of another namespace")
	}
}

// exports a Service to namespaces.
func (s *shop) exports(service, namespaces string) {
	s.t.Helper()
	body := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, ir.ExportToAnnotation, namespaces)
	s.must(admin.Patch(s.t.Context(), &corev1.Service{ObjectMeta: s.named(service)}, client.RawPatch(types.MergePatchType, []byte(body))))
}

// uses tells whether a proxy has a cluster of a service that is ready for requests.
func (s *shop) uses(e *envoy.Envoy, service string) bool {
	s.t.Helper()
	text, err := e.Get(s.t.Context(), "/clusters")
	s.must(err)
	return strings.Contains(text, service+"|80|")
}

// knows tells whether a proxy was sent a cluster of a service, ready or not.
func (s *shop) knows(e *envoy.Envoy, service string) bool {
	s.t.Helper()
	text, err := e.Get(s.t.Context(), "/config_dump")
	s.must(err)
	return strings.Contains(text, service+"|80|")
}

// What a proxy depends on may change while it runs, by what its namespace says and by what
// its pod does.
func TestASidecarSeesAnotherNamespaceAsSoonAsThatIsSaid(t *testing.T) {
	theirs, ours := newShop(t), newShop(t)
	theirs.service("pay", backend.Start(t, "paid"))
	theirs.exports("pay", ours.namespace)
	ours.service("own", backend.Start(t, "own"))
	d := discover(t)
	pod := ours.pod("front-0", nil)
	says := func(object client.Object, patch string) {
		t.Helper()
		ours.must(admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	front, _ := ours.proxy(d, pod)
	sees := func() bool { return ours.uses(front, theirs.namespace+"/pay") }
	poll.True(t, patience, "it has the service of its own namespace", func() bool { return ours.uses(front, ours.namespace+"/own") })
	if ours.knows(front, theirs.namespace+"/pay") {
		t.Fatal("it sees what nobody has asked for")
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ours.namespace}}
	says(namespace, fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, discovery.UpstreamsAnnotation, theirs.namespace+"/pay"))
	poll.True(t, patience, "it has what its namespace says", sees)
	says(pod, fmt.Sprintf(`{"metadata": {"annotations": {%q: ""}}}`, discovery.UpstreamsAnnotation))
	poll.True(t, patience, "it has no longer what its pod says it does not need", func() bool { return !sees() })
}

func TestWhoIsNoPodIsNotServed(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	d := discover(t)
	pod := s.pod("front-0", nil)
	for name, token := range map[string]string{
		"no token": "", "a token for somebody else": s.token(pod, "https://kubernetes.default.svc"), "an invented token": "x",
	} {
		t.Run(name, func(t *testing.T) {
			e := envoy.Start(t, envoy.Options{Address: d.address, Authority: d.authority, Node: "x", Token: token})
			poll.Until(t, patience, "it is refused", func() error {
				n, err := e.Stat(t.Context(), "cluster.plumbline-xds.upstream_rq_total")
				if err == nil && n == 0 {
					err = fmt.Errorf("it has not asked yet")
				}
				return err
			})
			if n, err := e.Stat(t.Context(), "cluster_manager.cds.update_success"); n != 0 || err != nil {
				t.Errorf("it was sent clusters: %d %v", n, err)
			}
		})
	}
	poll.Until(t, patience, "each reason is counted", func() error {
		if n := d.figure(t, "plumbline_xds_tokens_refused_total"); n != 3 {
			return fmt.Errorf("%d are, want 3", n)
		}
		return nil
	})
}

func TestAStreamEndsWhenItsPodIsDeleted(t *testing.T) {
	s := newShop(t)
	s.service("web", backend.Start(t, "one"))
	d := discover(t)
	pod := s.pod("front-0", nil)
	e, fronts := s.proxy(d, pod, "web")
	backend.Answers(t, patience, fronts["web"], "200 one")
	s.must(admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	poll.Until(t, patience, "it is no longer connected", func() error {
		n, err := e.Stat(t.Context(), "control_plane.connected_state")
		if err == nil && n != 0 {
			err = fmt.Errorf("it still is")
		}
		return err
	})
	backend.Answers(t, patience, fronts["web"], "200 one") // with what it had
}
