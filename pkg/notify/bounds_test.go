// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Each text has a bound of its own, so that a long one does not displace the others.
func TestEvent_BoundsOfEachText(t *testing.T) {
	long := strings.Repeat("ü", 2000)
	b := notify.Event{
		Transition: long, Plan: notify.PlanRef{Namespace: long, Name: long, UID: long}, Policy: long, Environment: long,
		Severity: v1alpha1.SeverityLevel(long), Targets: []notify.Target{{Kind: long, Namespace: long, Name: long, Reason: long}},
		Reason: long, InitiatedBy: long, CorrelationID: long, Evidence: &notify.Record{Chain: long, Digest: long},
	}.Bounded()
	got := map[string]int{}
	for name, text := range map[string]string{
		"transition": b.Transition, "namespace": b.Plan.Namespace, "name": b.Plan.Name, "uid": b.Plan.UID, "policy": b.Policy,
		"environment": b.Environment, "severity": string(b.Severity), "reason": b.Reason, "initiatedBy": b.InitiatedBy, "correlationID": b.CorrelationID, "chain": b.Evidence.Chain, "digest": b.Evidence.Digest,
		"target's kind": b.Targets[0].Kind, "target's namespace": b.Targets[0].Namespace, "target's name": b.Targets[0].Name, "target's reason": b.Targets[0].Reason,
	} {
		got[name] = utf8.RuneCountInString(text)
	}
	want := map[string]int{
		"transition": 128, "namespace": 63, "name": 253, "uid": 64, "policy": 253,
		"environment": 253, "severity": 16, "reason": 500, "initiatedBy": 256, "correlationID": 128, "chain": 64, "digest": 128,
		"target's kind": 63, "target's namespace": 63, "target's name": 253, "target's reason": 200,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runes (-want +got):\n%s", diff)
	}
}

// A message lists a target as long as the line that counts the others fits, too.
func TestSlackMessage_ListsTargetsUpToItsBound(t *testing.T) {
	target := func(s string) notify.Target {
		return notify.Target{Kind: strings.Repeat(s, 63), Namespace: strings.Repeat(s, 63), Name: strings.Repeat(s, 253), Reason: strings.Repeat(s, 200)}
	}
	wide := target("&") // each character has five bytes when it is escaped
	e := sample(notify.PlanFailed)
	e.Policy = strings.Repeat("x", 253)
	e.Targets = []notify.Target{wide, wide, wide, wide, wide, target("x")}
	longest, cut := 0, false
	for n := 1; n <= 500; n++ {
		e.Reason = strings.Repeat("x", n)
		raw, err := notify.SlackMessage(e, notify.SlackChannel{})
		if err != nil {
			t.Fatal(err)
		}
		var message struct{ Text string }
		if err := json.Unmarshal(raw, &message); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(message.Text, "- and 1 more") {
			cut = true
			continue
		}
		longest = max(longest, len(message.Text))
	}
	if want := 16_000 - len("- and 2147483647 more\n") - len("\n"); longest != want || !cut {
		t.Errorf("the longest text with all targets has %d bytes, want %d; cut %t", longest, want, cut)
	}
}
