// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads/acknowledged"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// Findings H2 and H4: a label and an annotation of a pod of another namespace were a vote.
func TestWhoHasToAcknowledge(t *testing.T) {
	made := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	pod := func(namespace string, change func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", UID: "u", CreationTimestamp: made, Labels: map[string]string{inject.LabelProxy: string(inject.Redirect)}}}
		proxied(&p)
		p.Status.Phase = corev1.PodRunning
		if change != nil {
			change(&p)
		}
		return p
	}
	annotated := func(name, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{name: value} }
	}
	explicitly := func(ports string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Labels[inject.LabelProxy] = string(inject.Explicit)
			p.Annotations = map[string]string{inject.AnnotationLocalPorts: ports}
		}
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase = phase }
	}
	gateways := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "gateway" }
	web := ir.Service{Namespace: "shop", Name: "web", Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP}, {Number: 81, Protocol: ir.HTTP}, {Number: 5432, Protocol: ir.TCP}}}
	hosted, exported := web, web
	exported.Export = ir.Export{Namespaces: []string{"other"}}
	hosted.Hosts = []ir.Host{{Name: "shop.example", Port: 80}}
	both, edge := []string{"shop/web|80", "shop/web|81"}, []string{"gateway|8080"}
	want := func(namespace string, routes []string, change func(*acknowledged.Wanted)) []acknowledged.Wanted {
		w := acknowledged.Wanted{Proxy: acknowledged.Proxy{UID: "u", Namespace: namespace, Pod: "p"}, Routes: routes, Since: made.Time, Redirected: true}
		if change != nil {
			change(&w)
		}
		return []acknowledged.Wanted{w}
	}
	tests := map[string]struct {
		service ir.Service
		pod     corev1.Pod
		want    []acknowledged.Wanted
	}{
		"a pod of its namespace":                                                {web, pod("shop", nil), want("shop", both, nil)},
		"not one of another namespace":                                          {web, pod("other", nil), nil},
		"not one of another that names it without consent":                      {web, pod("other", annotated(UpstreamsAnnotation, "shop/web")), nil},
		"not one of another with a local port that leads there without consent": {web, pod("other", explicitly("9000=shop/web:81")), nil},
		"one of another that names it": {exported, pod("other", annotated(UpstreamsAnnotation, "shop/web")), want("other", both, func(w *acknowledged.Wanted) {
			w.By = "the annotation plumbline.dev/upstreams of it or its namespace"
		})},
		"one of another with a local port that leads there": {exported, pod("other", explicitly("9000=shop/web:81")), want("other", []string{"shop/web|81"}, func(w *acknowledged.Wanted) {
			w.By = "the annotation plumbline.dev/local-ports of it or its namespace"
			w.Redirected = false
		})},
		"not one that has ended":               {web, pod("shop", phase(corev1.PodSucceeded)), nil},
		"one that starts, as such":             {web, pod("shop", phase(corev1.PodPending)), want("shop", both, func(w *acknowledged.Wanted) { w.Starting = true })},
		"one of which nothing is heard":        {web, pod("shop", phase(corev1.PodUnknown)), want("shop", both, nil)},
		"not one that is about to end":         {web, pod("shop", func(p *corev1.Pod) { p.DeletionTimestamp = &made }), nil},
		"with local ports, those":              {web, pod("shop", explicitly("9000=web:81")), want("shop", []string{"shop/web|81"}, func(w *acknowledged.Wanted) { w.Redirected = false })},
		"not one whose local ports go past it": {web, pod("shop", explicitly("9000=pay:80")), nil},
		"a gateway, if there are hosts":        {hosted, pod("plumbline", gateways), want("plumbline", edge, func(w *acknowledged.Wanted) { w.Shared, w.Redirected = true, false })},
		"not a gateway, if there are none":     {web, pod("plumbline", gateways), nil},
		"not one without the sidecar":          {web, pod("shop", func(p *corev1.Pod) { p.Spec.InitContainers = nil }), nil},
		"not who only has the gateway's label": {
			hosted, pod("other", func(p *corev1.Pod) { p.Labels[inject.LabelProxy] = inject.Gateway }), nil,
		},
	}
	fine := func(*corev1.Pod) string { return "" }
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &Directory{cluster: &cluster{}, Gateways: Account{"plumbline", "gateway"}}
			if diff := cmp.Diff(tc.want, voters{tc.service, d.scopes(), edge, fine, false}.wanted([]corev1.Pod{tc.pod})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Finding H4: proxies of other namespaces can be left out of the vote.
func TestWhoHasToAcknowledgeWithoutOtherNamespaces(t *testing.T) {
	web := ir.Service{Namespace: "shop", Name: "web", Ports: []ir.Port{{Number: 80, Protocol: ir.HTTP}}, Export: ir.Export{All: true}, Hosts: []ir.Host{{Name: "shop.example", Port: 80}}}
	pod := func(namespace, account string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Annotations: map[string]string{UpstreamsAnnotation: "shop/web"}}}
		p.Spec.ServiceAccountName = account
		return *proxied(&p)
	}
	d := &Directory{cluster: &cluster{}, Gateways: Account{"plumbline", "gateway"}}
	unfit := func(*corev1.Pod) string { return "its pod is not Ready" }
	pods := []corev1.Pod{pod("shop", "a"), pod("other", "a"), pod("plumbline", "gateway")}
	for same, want := range map[bool][]string{false: {"shop", "other", "plumbline"}, true: {"shop", "plumbline"}} {
		var got []string
		for _, w := range (voters{web, d.scopes(), []string{"gateway|8080"}, unfit, same}).wanted(pods) {
			if got = append(got, w.Namespace); w.Unfit == "" {
				t.Errorf("of %s it is not known that its pod is not Ready", w.Namespace)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without others: %t (-want +got):\n%s", same, diff)
		}
	}
}
