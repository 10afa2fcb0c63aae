// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

const smallestAssessment = `{subject: {plan: {name: production-7, uid: u-1, step: 0}}, policy: {name: production, uid: u-2}, correlationID: c-1,
requestedBy: alice, action: Reconcile, target: {apiVersion: apps/v1, kind: Deployment, name: web, baselineName: deployments.apps.web, uid: u-3},
signal: {kind: Deployment, name: web}, driftTime: '2026-01-01T00:00:00Z', execution: Executed, writtenTime: '2026-01-01T00:01:00Z',
windows: {stabilization: 5m, validity: 30m}}`

// completedStatus is that of an assessment of a write that helped.
func completedStatus() v1alpha1.EffectivenessAssessmentStatus {
	at, day := ago(0), metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // a column has the deadline
	return v1alpha1.EffectivenessAssessmentStatus{
		Conditions: conditions("True", "Completed"), ObservedGeneration: 1, Phase: v1alpha1.AssessmentCompleted,
		Schedule:  &v1alpha1.AssessmentSchedule{PropagatedTime: day, StabilizedTime: day, AlertsTime: day, DeadlineTime: day},
		Integrity: v1alpha1.IntegrityUnchanged, CurrentHash: "pl1:sha256:5eed", AskedTime: at,
		Components: []v1alpha1.AssessedComponent{
			{
				Name: v1alpha1.ComponentHealth, State: v1alpha1.ComponentAssessed, Score: new(int32(0)), Effect: v1alpha1.EffectAgainst, Message: "0 of 3 ready",
				Health: &v1alpha1.MeasuredHealth{Desired: 3},
			},
			{Name: v1alpha1.ComponentAlerts, State: v1alpha1.ComponentNotConfigured},
			{Name: v1alpha1.ComponentMetrics, State: v1alpha1.ComponentNotAnswered, Message: "HTTP 503"},
		},
		Reason: v1alpha1.AssessedPartial, Verdict: v1alpha1.VerdictIneffective, Score: new(int32(0)), Formula: 1,
		Message: "the workload is not ready", SideEffects: []string{"Deployment shop/cart became unready"}, CompletionTime: at,
	}
}

func TestEffectivenessAssessment_Fields(t *testing.T) {
	windows := func(fields string) string { return "windows: {" + fields + "}" }
	cases := map[string]specCase{
		"the smallest assessment is accepted":              {},
		"a step that wrote nothing needs no time":          {spec: "execution: NoExecution\nwrittenTime: null"},
		"a write without a time is refused":                {"writtenTime: null", []string{"spec.writtenTime"}, "an execution has a time"},
		"a subject without a plan is refused":              {"subject: {}", []string{"spec.subject.plan"}, "name the step of the plan"},
		"the run of a release needs no policy":             {spec: "subject: {release: {name: web, uid: u-1, run: 3}}\npolicy: null\naction: Promote"},
		"a step without a policy is refused":               {"policy: null", []string{"spec.policy"}, "the step of a plan has a policy"},
		"a step and a run are refused":                     {"subject: {plan: {name: production-7, uid: u-1, step: 0}, release: {name: web, uid: u-1, run: 3}}", []string{"spec.subject.plan"}, "or the run of the release"},
		"a run before the first is refused":                {"subject: {release: {name: web, uid: u-1, run: 0}}", []string{"spec.subject.release.run"}, "greater than or equal to 1"},
		"a step beyond the tenth is refused":               {"subject: {plan: {name: a, uid: b, step: 10}}", []string{"spec.subject.plan.step"}, "less than or equal to 9"},
		"an action that is none is refused":                {"action: Reboot", []string{"spec.action"}, "Unsupported value"},
		"an execution that is none is refused":             {"execution: Maybe", []string{"spec.execution"}, "Unsupported value"},
		"a target without a Baseline is refused":           {"target: {apiVersion: apps/v1, kind: Deployment, name: web}", []string{"spec.target.baselineName"}, "Required value"},
		"a signal without a name is refused":               {"signal: {kind: Service}", []string{"spec.signal.name"}, "Required value"},
		"a generation of 0 is refused":                     {"postGeneration: -1", []string{"spec.postGeneration"}, "greater than or equal to 1"},
		"a hash of 1 MiB is refused":                       {"postHash: " + strings.Repeat("a", 1<<20), []string{"spec.postHash"}, "may not be more than 128"},
		"a stabilization that is negative is refused":      {windows("stabilization: -5m, validity: 30m"), []string{"spec.windows.stabilization"}, "from 0s to 24h"},
		"a validity without a unit is refused":             {windows("stabilization: 5m, validity: '30'"), []string{"spec.windows.validity"}, "from 0s to 24h"},
		"a delay of alerts beyond a day is refused":        {windows("stabilization: 5m, validity: 30m, alertCheckDelay: 25h"), []string{"spec.windows.alertCheckDelay"}, "from 0s to 24h"},
		"a delay of the propagation without a unit":        {windows("stabilization: 5m, validity: 30m, propagationDelay: '30'"), []string{"spec.windows.propagationDelay"}, "from 0s to 24h"},
		"a window longer than the validity is accepted":    {spec: windows("stabilization: 1h, validity: 30s")},
		"an assessment without a stabilization is refused": {windows("validity: 30m"), []string{"spec.windows.stabilization"}, "Required value"},
	}
	maps.Copy(cases, questionCases("spec", func(fields string) string { return fields }))
	runSpecCases(t, "EffectivenessAssessment", smallestAssessment, cases)
	create(t, object(t, "EffectivenessAssessment", "asked", smallestAssessment))
	runPatchCases(t, "EffectivenessAssessment", "asked", dryPatch, map[string]patchCase{
		"another target afterwards is refused": {`{"spec":{"target":{"name":"cart"}}}`, []string{"spec"}, "is immutable"},
		"the same target is accepted":          {patch: `{"spec":{"target":{"name":"web"}}}`},
	})
	cases["an immutable spec, of the patches above"] = specCase{"", []string{"spec"}, "is immutable"}
	for _, at := range []string{"phase", "verdict", "reason"} {
		cases["an end that stays, of TestEffectivenessAssessment_End: "+at] = specCase{"", []string{"status." + at}, "stays"}
	}
	demandEveryRuleTried(t, "EffectivenessAssessment", "spec", cases)
	demandEveryRuleTried(t, "EffectivenessAssessment", "status", cases)
}

func TestEffectivenessAssessment_End(t *testing.T) {
	create(t, object(t, "EffectivenessAssessment", "ended", smallestAssessment))
	ended := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Completed","reason":"SpecDrift","verdict":"Invalidated","score":0}}`))
	if err := kube.Status().Patch(t.Context(), object(t, "EffectivenessAssessment", "ended"), ended); err != nil {
		t.Fatal(err)
	}
	runPatchCases(t, "EffectivenessAssessment", "ended", statusPatch, map[string]patchCase{
		"an end that is taken back is refused": {`{"status":{"phase":"Assessing"}}`, []string{"status.phase"}, "an assessment that has ended stays so"},
		"another verdict is refused":           {`{"status":{"verdict":"Effective"}}`, []string{"status.verdict"}, "a verdict stays"},
		"another reason is refused":            {`{"status":{"reason":"Full"}}`, []string{"status.reason"}, "the reason of an end stays"},
		"a score above 10,000 is refused":      {`{"status":{"score":10001}}`, []string{"status.score"}, "less than or equal to 10000"},
		"an effect that is none is refused":    {`{"status":{"components":[{"name":"Health","state":"Assessed","effect":"Maybe"}]}}`, []string{"status.components[0].effect"}, "Unsupported value"},
	})
}

func effectivenessCases() map[string]specCase {
	const at = "spec.effectiveness"
	block := func(fields string) string { return "effectiveness: {" + fields + "}" }
	return map[string]specCase{
		"an empty effectiveness is accepted":                   {spec: block("")},
		"a stabilization as long as the cooldown is accepted":  {spec: block("stabilization: 5m")},
		"a stabilization longer than the cooldown is refused":  {block("stabilization: 6m"), []string{at + ".stabilization"}, "at most safety.cooldown"},
		"a stabilization without a cooldown is refused":        {block("stabilization: 10s") + "\nsafety: {cooldown: 0s}", []string{at + ".stabilization"}, "at most safety.cooldown"},
		"no stabilization without a cooldown is accepted":      {spec: block("validity: 1h") + "\nsafety: {cooldown: 0s}"},
		"a stabilization as long as the validity is refused":   {block("stabilization: 1m, validity: 1m"), []string{at + ".stabilization"}, "must be shorter than validity"},
		"a stabilization of 9s is refused":                     {block("stabilization: 9s"), []string{at + ".stabilization"}, "from 10s to 1h"},
		"a stabilization of 61m is refused":                    {block("stabilization: 61m, validity: 2h") + "\nsafety: {cooldown: 2h}", []string{at + ".stabilization"}, "from 10s to 1h"},
		"a validity of 29s is refused":                         {block("validity: 29s"), []string{at + ".validity"}, "from 30s to 24h"},
		"a validity of 25h is refused":                         {block("validity: 25h"), []string{at + ".validity"}, "from 30s to 24h"},
		"a delay of alerts that is negative is refused":        {block("alertCheckDelay: -1m"), []string{at + ".alertCheckDelay"}, "from 0s to 1h"},
		"the hashes of DD-EM-002 are accepted":                 {spec: block("hashes: ddem002")},
		"hashes that are none are refused":                     {block("hashes: md5"), []string{at + ".hashes"}, "Unsupported value"},
		"a delay of the propagation beyond an hour is refused": {block("propagationDelay: 2h"), []string{at + ".propagationDelay"}, "from 0s to 1h"},
	}
}
