// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/remediate/repair"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

func creationsWork(ctx context.Context) (bool, error) {
	as, err := apiserver.As(config, executor)
	if err != nil {
		return false, err
	}
	return apierrors.IsForbidden(as.Create(ctx, deployment("probe-creations"), client.DryRunAll)), nil
}

// dated is an object that the executor may make until a time.
func dated[T client.Object](o T, notAfter string) T {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[repair.AnnotationNotAfter] = notAfter
	o.SetAnnotations(annotations)
	return o
}

// serverTime is the time with which the API server stamps new objects.
func serverTime(t *testing.T) time.Time {
	t.Helper()
	probe := deployment("probe-time")
	if err := admin.Create(t.Context(), probe, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	return probe.CreationTimestamp.Time
}

// D4 of the review of remediation: a creation whose sender slept was stored after the plan
// said Canceled. The API server itself tells the time of a creation.
func TestTheExecutorMakesAnObjectInTimeOrNever(t *testing.T) {
	const (
		undated = "the executor makes an object only with the annotation plumbline.dev/not-after"
		tooLate = "the executor was to make the object until "
	)
	awaitWidgets(t)
	now := serverTime(t)
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	// forged says that it was made an hour ago.
	forged := dated(deployment("forged"), at(-time.Minute))
	forged.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	tests := map[string]struct {
		who     who
		make    client.Object
		options []client.CreateOption
		refused string
	}{
		"in time":                               {execute, dated(deployment("in-time"), at(time.Minute)), nil, ""},
		"in time, in another zone":              {execute, dated(deployment("in-another-zone"), now.Add(time.Minute).In(time.FixedZone("IST", 19800)).Format(time.RFC3339)), nil, ""},
		"too late":                              {execute, dated(deployment("too-late"), at(-time.Second)), nil, tooLate + at(-time.Second)},
		"too late, with a forged timestamp":     {execute, forged, nil, tooLate},
		"too late, as a dry run":                {execute, dated(deployment("too-late-dry"), at(-time.Second)), []client.CreateOption{client.DryRunAll}, tooLate},
		"in time, as a dry run":                 {execute, dated(deployment("in-time-dry"), at(time.Minute)), []client.CreateOption{client.DryRunAll}, ""},
		"without a time":                        {execute, deployment("undated"), nil, undated},
		"without a time, as a dry run":          {execute, deployment("undated-dry"), []client.CreateOption{client.DryRunAll}, undated},
		"with another annotation":               {execute, noted(deployment("noted")), nil, undated},
		"until an empty text":                   {execute, dated(deployment("empty"), ""), nil, undated},
		"another kind too late":                 {execute, dated(configMap("too-late"), at(-time.Hour)), nil, tooLate},
		"another kind in time":                  {execute, dated(configMap("in-time"), at(time.Minute)), nil, ""},
		"a custom kind too late":                {execute, dated(object("example.com/v1", "Widget", "made-too-late", nil), at(-time.Hour)), nil, tooLate},
		"a custom kind in time":                 {execute, dated(object("example.com/v1", "Widget", "made-in-time", nil), at(time.Minute)), nil, ""},
		"somebody else needs no time":           {alice, deployment("by-alice"), nil, ""},
		"and a time that is over means nothing": {alice, dated(deployment("copied"), at(-time.Hour)), nil, ""},
		"an account whose name begins alike":    {almost, deployment("by-almost"), nil, ""},
		"an executor of another namespace":      {namesake, deployment("by-namesake"), nil, ""},
		"with more rights than its role":        {who{executor, []string{"roots"}}, deployment("by-a-wide-executor"), nil, undated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assertAnswer(t, mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), test.make, test.options...), test.refused)
		})
	}
}

// awaitWidgets waits until the stamp policy knows the kind, which is younger than that.
func awaitWidgets(t *testing.T) {
	t.Helper()
	poll.Until(t, patience, "a widget can be made", func() error {
		return admin.Create(t.Context(), object("example.com/v1", "Widget", "probe-widgets", nil), client.DryRunAll)
	})
}

func noted(d *appsv1.Deployment) *appsv1.Deployment {
	d.Annotations = map[string]string{"note": "x"}
	return d
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name}}
}

// The expression fails on such a text, and the policy with it.
func TestTheExecutorMakesNothingUntilATextThatIsNoTime(t *testing.T) {
	for name, text := range map[string]string{"a word": "tomorrow", "a date": "2026-03-02", "no zone": "2026-03-02T10:00:44", "a number": "1772445644"} {
		t.Run(name, func(t *testing.T) {
			err := mustBe(t, executor).Create(t.Context(), dated(deployment("no-time"), text))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "plumbline-executor-creations") {
				t.Errorf("error = %v, want that of the expression", err)
			}
		})
	}
}

func TestAnApplyMakesNothingForTheExecutorWithoutATime(t *testing.T) {
	applied := deployment("made-by-apply")
	applied.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	apply := func() error {
		return mustBe(t, executor).Patch(t.Context(), applied.DeepCopy(), client.Apply, client.FieldOwner("x")) //nolint:staticcheck // as the request is
	}
	assertAnswer(t, apply(), "the executor makes an object only with the annotation")
	dated(applied, serverTime(t).Add(time.Minute).UTC().Format(time.RFC3339))
	assertAnswer(t, apply(), "")
}

// What the executor makes in the course of its work carries no time.
func TestTheExecutorDoesItsOwnWorkWithoutATime(t *testing.T) {
	wide := who{executor, []string{"roots"}} // leases of any name
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "new-event"}, EventTime: now, ReportingController: "plumbline.dev/executor", ReportingInstance: "x",
		Action: "A", Reason: "R", Type: "Normal", Regarding: corev1.ObjectReference{Namespace: tenant},
	}
	old := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "old-event"}, InvolvedObject: corev1.ObjectReference{Namespace: rendered.Namespace},
	}
	asked := &authorizationv1.ResourceAttributes{Verb: "create", Group: "apps", Resource: "deployments", Namespace: tenant}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "alice", ResourceAttributes: asked}}
	ofSelf := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: asked}}
	tests := map[string]struct {
		who  who
		make client.Object
	}{
		"a ledger":         {execute, remediationLedger("made-without-a-time")},
		"an Event":         {execute, event},
		"an Event of old":  {execute, old},
		"a lease":          {wide, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "made-without-a-time"}}},
		"a review":         {execute, review},
		"a review of self": {execute, ofSelf},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := mustBe(t, test.who.user, test.who.groups...).Create(t.Context(), test.make); err != nil {
				t.Error(err)
			}
		})
	}
}

// The object keeps the annotation, and all writers of the object may change it.
func TestTheTimeOfACreationMeansNothingAfterwards(t *testing.T) {
	d := dated(deployment("made-once"), serverTime(t).Add(time.Minute).UTC().Format(time.RFC3339))
	mustCreate(t, execute, d)
	for i, by := range []who{alice, execute} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-03-02T10:00:0%dZ"}},"spec":{"replicas":%d}}`, repair.AnnotationNotAfter, i, i+2)
		if err := merged(t, by, d, patch); err != nil {
			t.Errorf("%s: %v", by.user, err)
		}
	}
}
