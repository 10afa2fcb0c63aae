// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// driftChannels are a webhook and a chat of a guard, with the least interval.
func driftChannels() *v1alpha1.GuardNotifications {
	key := at("key")
	return &v1alpha1.GuardNotifications{
		GroupInterval: &metav1.Duration{Duration: 10 * time.Second},
		Channels: []v1alpha1.NotificationChannel{
			{Name: "hook", Type: v1alpha1.ChannelWebhook, Destination: at("url"), SigningKey: &key},
			{Name: "chat", Type: v1alpha1.ChannelSlack, Destination: at("chat"), Channel: "#ops-alerts", MinimumSeverity: v1alpha1.SeverityInfo},
		},
	}
}

// permit lets guards of a namespace name the Secret of the receivers.
func (r *receivers) permit(namespace string) {
	r.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Name: receiversSecret}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"other, %s"}}}`, v1alpha1.AnnotationNotificationNamespaces, namespace)
	if err := admin.Patch(r.t.Context(), s, client.RawPatch(types.MergePatchType, patch)); err != nil {
		r.t.Fatal(err)
	}
}

// heard are the first lines of chats, and the types of webhooks.
func (r *receivers) heard() (chats, hooks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, hook := range r.hooks {
		_, kind, _ := strings.Cut(hook, " ")
		hooks = append(hooks, kind)
	}
	return slices.Clone(r.chats), hooks
}

// counter is the sum of a counter over all channels.
func counter(t testing.TB, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// No policy is there: the guard itself tells people of drift, of both objects at once, and of
// the end. Until the Secret permits it, a tenant's guard writes to no channel.
func TestPeopleHearOfDriftAndOfItsEndFromAGuard(t *testing.T) {
	w, r, registry := newWorld(t), newReceivers(t), prometheus.NewRegistry()
	startAssessor(t, r.assessorTells(registry), func(s *assessor.Setup) { s.GroupWait = time.Second })
	w.UnderGuard(func(g *v1alpha1.SpecGuard) { g.Spec.Notifications = driftChannels() })
	for _, name := range []string{"web", "cart"} {
		w.Deploy(guarded.CI, name)
		w.UntilIs(name, "InSync")
	}
	for _, name := range []string{"web", "cart"} {
		w.SetImage(mallory, name, remediation.EvilImage)
	}
	w.Eventually("deliveries without permission are repeated", func() error {
		if n := counter(w.t, registry, "plumbline_notification_retries_total"); n < 4 {
			return fmt.Errorf("%v were", n)
		}
		return nil
	})
	if chats, hooks := r.heard(); len(chats)+len(hooks) > 0 {
		t.Fatalf("without permission, these came: %q, %q", chats, hooks)
	}
	r.permit(w.Name)
	w.untilOutcomes(registry, "sent", 2)
	for _, name := range []string{"web", "cart"} {
		w.SetImage(guarded.CI, name, "registry.example/shop:2")
	}
	w.untilOutcomes(registry, "sent", 4)
	chats, hooks := r.heard()
	want := []string{"Drift in namespace `" + w.Name + "`: 2 objects", "Drift in namespace `" + w.Name + "` is over: 2 objects"}
	if diff := cmp.Diff(want, chats); diff != "" {
		t.Errorf("the chat (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"drift.detected", "drift.resolved"}, hooks); diff != "" {
		t.Errorf("the webhook (-want +got):\n%s", diff)
	}
}

// Bad input of notifications is refused with the field.
func TestNotificationsOfAGuardThatCannotBeAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change func(*v1alpha1.GuardNotifications)
		want   string
	}{
		"an interval that is too short": {func(n *v1alpha1.GuardNotifications) { n.GroupInterval.Duration = 9 * time.Second }, "spec.notifications.groupInterval"},
		"an interval of a year":         {func(n *v1alpha1.GuardNotifications) { n.GroupInterval.Duration = 8760 * time.Hour }, "spec.notifications.groupInterval"},
		"a silence without a reason": {func(n *v1alpha1.GuardNotifications) {
			n.Silences = []v1alpha1.NotificationSilence{{EndTime: metav1.Now()}}
		}, "spec.notifications.silences[0].reason"},
		"a silence without an end": {func(n *v1alpha1.GuardNotifications) { n.Silences = []v1alpha1.NotificationSilence{{Reason: "work"}} }, "spec.notifications.silences[0].endTime"},
		"a silence of a pattern": {func(n *v1alpha1.GuardNotifications) {
			n.Silences = []v1alpha1.NotificationSilence{{Reason: "work", EndTime: metav1.Now(), Namespaces: []string{"shop-*"}}}
		}, "spec.notifications.silences[0].namespaces[0]"},
		"a webhook without a key":  {func(n *v1alpha1.GuardNotifications) { n.Channels[0].SigningKey = nil }, "spec.notifications.channels[0].signingKey"},
		"two channels of one name": {func(n *v1alpha1.GuardNotifications) { n.Channels[1].Name = "hook" }, "spec.notifications.channels[1]"},
		"nine channels": {func(n *v1alpha1.GuardNotifications) {
			for i := range 7 {
				c := n.Channels[1]
				c.Name = fmt.Sprint(i)
				n.Channels = append(n.Channels, c)
			}
		}, "spec.notifications.channels"},
	} {
		g := &v1alpha1.SpecGuard{ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "refused"}}
		g.Spec.Categories, g.Spec.Notifications = []v1alpha1.ResourceCategory{v1alpha1.CategoryWorkloads}, driftChannels()
		tc.change(g.Spec.Notifications)
		if err := admin.Create(w.Ctx(), g); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
