// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

var proxied = map[string]string{inject.LabelProxy: string(inject.Redirect)}

func TestTheAuthoritiesAreWhereProxiesAre(t *testing.T) {
	r := shared.start(t, "one")
	byNamespace, byPod, neither := shared.shop(t, enabled), shared.shop(t, nil), shared.shop(t, nil)
	byNamespace.awaitCopy()
	pod := byPod.pod("front-0", proxied)
	byPod.awaitCopy()

	for name, spoil := range map[string]func(m *corev1.ConfigMap){
		"a bundle that somebody changed": func(m *corev1.ConfigMap) { m.Data[inject.CAKey] = "none" },
		"a key that somebody removed":    func(m *corev1.ConfigMap) { m.Data = nil },
		"a key that somebody added":      func(m *corev1.ConfigMap) { m.Data["more"] = "x" },
		"binary data":                    func(m *corev1.ConfigMap) { m.BinaryData = map[string][]byte{"more": {1}} },
		"one that nobody can change any more": func(m *corev1.ConfigMap) {
			m.Data[inject.CAKey], m.Immutable = "none", new(true)
		},
	} {
		t.Run(name+" is put right", func(t *testing.T) {
			s := &shop{T: t, c: shared, name: byNamespace.name}
			m := s.copied()
			spoil(m)
			s.must(shared.admin.Update(t.Context(), m))
			s.awaitCopy()
		})
	}
	byNamespace.must(shared.admin.Delete(t.Context(), byNamespace.copied()))
	byNamespace.awaitCopy()

	byNamespace.pod("front-0", proxied)
	byNamespace.label(inject.LabelInject, inject.Disabled)
	byPod.must(shared.admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	poll.True(t, patience, "nobody there needs it any more", func() bool { return byPod.copied() == nil })
	byNamespace.awaitCopy() // a proxy is left
	byNamespace.must(shared.admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(byNamespace.name), client.GracePeriodSeconds(0)))
	poll.True(t, patience, "it opted out and has no proxy left", func() bool { return byNamespace.copied() == nil })
	if m := neither.copied(); m != nil {
		t.Errorf("a namespace without proxies has %v", m.Data)
	}
	if n, err := r.Metric(t.Context(), "plumbline_xds_ca_writes_total"); err != nil || n < 8 {
		t.Errorf("%v writes are counted, %v", n, err)
	}
}

func TestAConfigMapOfSomebodyElseIsReportedAndLeft(t *testing.T) {
	s := shared.shop(t, nil)
	theirs := &corev1.ConfigMap{ObjectMeta: s.named(inject.CAConfigMap), Data: map[string]string{"theirs": "yes"}}
	s.create(theirs)
	r := shared.start(t, "one")
	s.label(inject.LabelInject, inject.Enabled)
	poll.Until(t, patience, "it is counted", func() error {
		n, err := r.Metric(t.Context(), "plumbline_xds_ca_copies", `state="foreign"`)
		if err == nil && n != 1 {
			err = fmt.Errorf("%v are", n)
		}
		return err
	})
	poll.Until(t, patience, "there is an event", func() error {
		var events eventsv1.EventList
		if err := shared.admin.List(t.Context(), &events, client.InNamespace(s.name)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "ConfigMapNotOurs" && e.Regarding.Name == inject.CAConfigMap && strings.Contains(e.Note, "Remove or rename it") {
				return nil
			}
		}
		return fmt.Errorf("%d others", len(events.Items))
	})
	s.label(inject.LabelInject, inject.Disabled)
	poll.Until(t, patience, "it is counted no more", func() error {
		n, err := r.Metric(t.Context(), "plumbline_xds_ca_copies", `state="foreign"`)
		if err == nil && n != 0 {
			err = fmt.Errorf("%v are", n)
		}
		return err
	})
	if after := s.copied(); after == nil || after.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it was touched: %v", after)
	}
}

func TestNothingIsMadeInANamespaceThatEnds(t *testing.T) {
	r := shared.start(t, "one")
	ending, other := shared.shop(t, enabled), shared.shop(t, nil)
	ending.awaitCopy()
	// No controller removes what is in it, so it stays as one that ends.
	ending.must(shared.admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ending.name}}))
	ending.must(shared.admin.Delete(t.Context(), ending.copied()))
	other.label(inject.LabelInject, inject.Enabled)
	other.awaitCopy() // That came later.
	if m := ending.copied(); m != nil {
		t.Errorf("it has %v", m.Data)
	}
	if strings.Contains(r.Said(), "because it is being terminated") {
		t.Error("it was tried")
	}
}
