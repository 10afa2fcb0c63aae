// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

var eventTypes = []notify.EventType{
	notify.PlanCreated, notify.PlanStarted, notify.PlanCompleted, notify.PlanFailed, notify.PlanEscalated,
	notify.RunStarted, notify.StageAdvanced, notify.StageFailed, notify.RunPromoted, notify.RunRolledBack, notify.RunOverdue, notify.RunWaiting,
	notify.DriftDetected, notify.DriftResolved,
}

// isAboutRelease tells whether events of a type are about a release.
func isAboutRelease(kind notify.EventType) bool {
	return !strings.HasPrefix(string(kind), "Plan") && !isAboutDrift(kind)
}

// isAboutDrift tells whether events of a type are about guarded objects.
func isAboutDrift(kind notify.EventType) bool { return strings.HasPrefix(string(kind), "Drift") }

// sample is an ordinary event.
func sample(kind notify.EventType) notify.Event {
	if isAboutRelease(kind) {
		return notify.Event{
			Type: kind, Transition: "7",
			Release:     &notify.ReleaseRef{Namespace: "shop", Name: "pay", UID: "4c1de0a5-86a4-4c58-a1a5-1c5f6f2f9c11", Service: "pay", Run: 7, Stage: 2, TrafficPercentage: "25"},
			Environment: "production", Reason: "stage 2 failed: 5.1 % errors [3.2, 7.6], stable 0.3 %", Time: time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC),
		}
	}
	if isAboutDrift(kind) {
		return notify.Event{
			Type: kind, Transition: "5f2a", Guard: &notify.GuardRef{Kind: "SpecGuard", Namespace: "shop", Name: "workloads", UID: "9a51de0a-86a4-4c58-a1a5-1c5f6f2f9c11", ObjectNamespace: "shop"},
			Environment: "production", Severity: v1alpha1.SeverityHigh, Counts: notify.Counts{Total: 12}, Time: time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC),
			Targets: []notify.Target{
				{Kind: "Deployment", Namespace: "shop", Name: "web", Reason: "Changed /spec/template/spec/containers/[name=app]/image by mallory (Untrusted, WriterStamp)"},
				{Kind: "Deployment", Namespace: "shop", Name: "cart", Reason: "The object is gone, and no trusted writer removed it."},
			},
		}
	}
	return notify.Event{
		Type:        kind,
		Plan:        notify.PlanRef{Namespace: "shop", Name: "production-7f3k", UID: "0b5a1f52-2c0b-4a9f-9a51-0e7c3d5a9f11"},
		Policy:      "production-auto-remediation",
		Environment: "production",
		Severity:    v1alpha1.SeverityHigh,
		Counts:      notify.Counts{Total: 3, Succeeded: 1, Failed: 1, Skipped: 1},
		Targets: []notify.Target{
			{Kind: "Deployment", Namespace: "shop", Name: "web", Reason: "repaired"},
			{Kind: "Deployment", Namespace: "shop", Name: "cart", Reason: "health check failed"},
			{Kind: "StatefulSet", Namespace: "shop", Name: "db"},
		},
		InitiatedBy:   "system:auto",
		CorrelationID: "c-81f3",
		Evidence:      &notify.Record{Chain: "6d1f7f0e-5a0e-4b57-8d0a-3a1f0f4f5c11", Sequence: 42, Digest: "sha256:" + strings.Repeat("4f", 32)},
		Time:          time.Date(2026, 3, 2, 3, 4, 5, 0, time.UTC),
		Link:          "https://plumbline.example.com/plans/shop/production-7f3k",
	}
}

// hostile is an event of which every string tries something.
func hostile() notify.Event {
	e := sample(notify.PlanFailed)
	e.Plan.Name = "x\r\nBcc: everybody@example.com\r\n\r\nhello"
	e.Policy = "<!channel> @channel @here `@all`"
	e.Environment = "[click](https://evil.example) <https://evil.example|here>"
	e.InitiatedBy = "mallory@example.com =?utf-8?q?=0D=0ASubject:_other?="
	e.Reason = "&lt;!here&gt; *bold* _it_ ~no~ \u202egpj.exe\u2066 \x00\x1b[31m\ufeff www.evil.example"
	e.CorrelationID = strings.Repeat("a\u0301", 400) + "\xff\xfe"
	e.Evidence = &notify.Record{Chain: "@channel\n", Sequence: -1, Digest: "<https://evil.example|sha256>\x00"}
	e.Link = "https://evil.example/|<!channel>"
	e.Targets = []notify.Target{
		{Kind: "Deployment`", Namespace: "`\n> quote", Name: "@everyone", Reason: "see http://169.254.169.254/latest"},
		{},
	}
	e.Counts = notify.Counts{Total: -5, Failed: -1}
	return e
}

func TestEvent_IDIsTheSameForTheSameHappeningAlone(t *testing.T) {
	base := sample(notify.PlanStarted)
	cases := map[string]struct {
		change func(*notify.Event)
		same   bool
	}{
		"nothing changed":                        {func(*notify.Event) {}, true},
		"told later, with other counts":          {func(e *notify.Event) { e.Time = e.Time.Add(time.Hour); e.Counts.Failed = 9; e.Targets = nil }, true},
		"the plan's name says nothing, uid does": {func(e *notify.Event) { e.Plan.Name = "other" }, true},
		"another plan":                           {func(e *notify.Event) { e.Plan.UID = "other" }, false},
		"another type":                           {func(e *notify.Event) { e.Type = notify.PlanFailed }, false},
		"another transition":                     {func(e *notify.Event) { e.Transition = "epoch-2" }, false},
		"parts that are the same when joined":    {func(e *notify.Event) { e.Plan.UID += "PlanStarted"; e.Type = "" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := base
			tc.change(&e)
			if (e.ID() == base.ID()) != tc.same {
				t.Errorf("ids %s and %s, same: %t wanted", base.ID(), e.ID(), tc.same)
			}
		})
	}
	if !regexp.MustCompile(`^evt_[0-9a-f]{32}$`).MatchString(base.ID()) {
		t.Errorf("id %q", base.ID())
	}
	// Receivers remember ids: this one must outlive every release.
	if got, want := base.ID(), "evt_92f9e060f26917d9402276a00670b61c"; got != want {
		t.Errorf("the id of a known event is %s, was %s", got, want)
	}
}

func TestEvent_TypesAreAllKnownAndOnlyTwoAreUrgent(t *testing.T) {
	urgent := map[notify.EventType]bool{}
	for _, kind := range append(eventTypes, "", "PlanDeleted") {
		if kind.Urgent() {
			urgent[kind] = true
		}
		if want := kind != "" && kind != "PlanDeleted"; kind.Known() != want {
			t.Errorf("%q known: %t", kind, kind.Known())
		}
	}
	if diff := cmp.Diff(map[notify.EventType]bool{
		notify.PlanFailed: true, notify.PlanEscalated: true, notify.StageFailed: true, notify.RunRolledBack: true, notify.RunOverdue: true, notify.RunWaiting: true,
	}, urgent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// anyEvent draws events of anything, hostile words more often than chance would.
func anyEvent(t *rapid.T) notify.Event {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.SampledFrom([]rune("`@<>&|[]()*_~:/!#\n\r\t \u202e\u200b\ufeff\u0000aA0.=?'\"\\"))),
		rapid.SampledFrom([]string{"@channel", "<!here>", "https://evil.example", "a`b", "=?utf-8?q?=0D=0ABcc:_x?=", "\xff\xfe\xfd", strings.Repeat("&", 3000), strings.Repeat("𝕏", 900)}),
	)
	target := rapid.Custom(func(t *rapid.T) notify.Target {
		return notify.Target{Kind: text.Draw(t, "kind"), Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"), Reason: text.Draw(t, "reason")}
	})
	count := rapid.IntRange(-2, 1<<31-1)
	kind := rapid.SampledFrom(eventTypes).Draw(t, "type")
	var release *notify.ReleaseRef
	if isAboutRelease(kind) {
		release = &notify.ReleaseRef{
			Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"), UID: text.Draw(t, "uid"), Service: text.Draw(t, "service"),
			Run: rapid.Int64().Draw(t, "run"), Stage: rapid.Int32().Draw(t, "stage"), TrafficPercentage: text.Draw(t, "percentage"),
		}
	}
	var guard *notify.GuardRef
	if isAboutDrift(kind) {
		guard = &notify.GuardRef{
			Kind: text.Draw(t, "kind"), Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"), UID: text.Draw(t, "uid"), ObjectNamespace: text.Draw(t, "objectNamespace"),
		}
	}
	return notify.Event{
		Type: kind, Release: release, Guard: guard,
		Transition:  text.Draw(t, "transition"),
		Plan:        notify.PlanRef{Namespace: text.Draw(t, "namespace"), Name: text.Draw(t, "name"), UID: text.Draw(t, "uid")},
		Policy:      text.Draw(t, "policy"),
		Environment: text.Draw(t, "environment"),
		Severity:    v1alpha1.SeverityLevel(text.Draw(t, "severity")),
		Counts: notify.Counts{
			Total: count.Draw(t, "total"), Succeeded: count.Draw(t, "succeeded"), Failed: count.Draw(t, "failed"), Skipped: count.Draw(t, "skipped"),
		},
		Targets:       rapid.SliceOfN(target, 0, 14).Draw(t, "targets"),
		Reason:        text.Draw(t, "reason"),
		InitiatedBy:   text.Draw(t, "initiatedBy"),
		CorrelationID: text.Draw(t, "correlationID"),
		Evidence:      &notify.Record{Chain: text.Draw(t, "chain"), Sequence: rapid.Int64().Draw(t, "sequence"), Digest: text.Draw(t, "digest")},
		Time:          time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), 0),
		Link:          rapid.OneOf(text, rapid.SampledFrom([]string{"https://plumbline.example.com/plans/a?b=c&d=e", "https://x/" + strings.Repeat("&", 1000)})).Draw(t, "link"),
	}
}

func TestEvent_BoundedTwiceIsBoundedOnceAndShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent(t)
		once := e.Bounded()
		if diff := cmp.Diff(once, once.Bounded()); diff != "" {
			t.Fatalf("(-once +twice):\n%s", diff)
		}
		if e.ID() != once.ID() {
			t.Fatal("the id changed")
		}
		texts := []string{
			once.Plan.Namespace, once.Plan.Name, once.Plan.UID, once.Policy, once.Environment, string(once.Severity),
			once.Reason, once.InitiatedBy, once.CorrelationID, once.Transition, once.Evidence.Chain, once.Evidence.Digest,
		}
		for _, target := range once.Targets {
			texts = append(texts, target.Kind, target.Namespace, target.Name, target.Reason)
		}
		for _, s := range texts {
			if !utf8.ValidString(s) || utf8.RuneCountInString(s) > 500 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Fatalf("not clean: %q", s)
			}
		}
		if len(once.Targets) > notify.MaxTargets || once.Counts.Total < len(e.Targets) {
			t.Fatalf("%d targets of %d", len(once.Targets), once.Counts.Total)
		}
	})
}

func TestEvent_BoundedSharesNothing(t *testing.T) {
	e := sample(notify.PlanCreated)
	b := e.Bounded()
	e.Targets[0].Name = "changed"
	if b.Targets[0].Name != "web" {
		t.Error("a change of the caller's slice is seen")
	}
}
