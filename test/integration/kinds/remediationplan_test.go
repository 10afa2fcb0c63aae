// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	aTarget = `{apiVersion: apps/v1, kind: Deployment, name: web, baselineName: deployments.apps.web, uid: u, driftedHash: d, desiredHash: h,
  revision: r, revisionHash: h, paths: [/spec/replicas], action: Reconcile, severity: {level: High, score: 70}, driftType: Scale, firstSeenTime: '2026-01-01T00:00:00Z'}`
	aBatch = `{order: 0, steps: [0], requiresHealthCheck: Enabled}`
	// %s are targets and batches.
	planOf = `plan: {policy: {name: production, uid: p, generation: 1, digest: d}, environmentName: production, trigger: Immediate, strategy: Rolling,
  initiatedBy: system:auto, requester: alice, correlationID: c, deadlineTime: '2026-01-01T01:00:00Z', targets: [%s], batches: [%s]}`
)

var smallestPlan = fmt.Sprintf(planOf, aTarget, aBatch)

func TestRemediationPlan_Fields(t *testing.T) {
	cases := map[string]specCase{"the smallest plan is accepted": {}}
	maps.Copy(cases, planCases())
	maps.Copy(cases, controlCases())
	runSpecCases(t, "RemediationPlan", smallestPlan, cases)
	// Tried by TestRemediationPlan_Transitions, because it needs a stored plan.
	cases["a plan is immutable"] = specCase{"", []string{"spec.plan"}, planIsImmutable}
	demandEveryRuleTried(t, "RemediationPlan", "spec", cases)
}

func planCases() map[string]specCase {
	target := func(from, to string) string {
		return fmt.Sprintf(planOf, strings.Replace(aTarget, from, to, 1), aBatch)
	}
	batch := func(b string) string { return fmt.Sprintf(planOf, aTarget, b) }
	plan := func(from, to string) string { return strings.Replace(smallestPlan, from, to, 1) }
	return map[string]specCase{
		"a target that is made again has no uid":       {spec: target("uid: u, ", "")},
		"a target as a whole names no paths":           {spec: target("paths: [/spec/replicas], ", "")},
		"ten targets are accepted":                     {spec: fmt.Sprintf(planOf, strings.Repeat(aTarget+", ", 9)+aTarget, strings.Replace(aBatch, "[0]", "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]", 1))},
		"eleven targets are refused":                   {fmt.Sprintf(planOf, strings.Repeat(aTarget+", ", 10)+aTarget, aBatch), []string{"spec.plan.targets"}, "must have at most 10 items"},
		"no targets are refused":                       {fmt.Sprintf(planOf, "", aBatch), []string{"spec.plan.targets"}, "should have at least 1 items"},
		"a target without a name is refused":           {target("name: web, ", ""), []string{"spec.plan.targets[0].name"}, "Required value"},
		"a target without what it is now is refused":   {target("driftedHash: d, ", ""), []string{"spec.plan.targets[0].driftedHash"}, "Required value"},
		"a target without what it is to be is refused": {target("desiredHash: h,", ""), []string{"spec.plan.targets[0].desiredHash"}, "Required value"},
		"a target without a revision is refused":       {target("revision: r, ", ""), []string{"spec.plan.targets[0].revision"}, "Required value"},
		"a revision without its hash is refused":       {target("revisionHash: h, ", ""), []string{"spec.plan.targets[0].revisionHash"}, "Required value"},
		"a target without an action is refused":        {target("action: Reconcile, ", ""), []string{"spec.plan.targets[0].action"}, "Required value"},
		"an unknown action is refused":                 {target("action: Reconcile", "action: Delete"), []string{"spec.plan.targets[0].action"}, "Unsupported value"},
		"an unknown drift type is refused":             {target("driftType: Scale", "driftType: Color"), []string{"spec.plan.targets[0].driftType"}, "Unsupported value"},
		"more paths than findings are refused":         {target("[/spec/replicas]", "["+repeat(65, "/a%d")+"]"), []string{"spec.plan.targets[0].paths"}, "must have at most 64 items"},
		"a batch of no steps is refused":               {batch("{order: 0, steps: [], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches[0].steps"}, "should have at least 1 items"},
		"a step twice in a batch is refused":           {batch("{order: 0, steps: [0, 0], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches[0].steps[1]"}, "Duplicate value"},
		"no batches are refused":                       {batch(""), []string{"spec.plan.batches"}, "should have at least 1 items"},
		"a batch that says nothing of health":          {batch("{order: 0, steps: [0]}"), []string{"spec.plan.batches[0].requiresHealthCheck"}, "Required value"},
		"a batch out of all order is refused":          {batch("{order: 10, steps: [0], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches[0].order"}, "should be less than or equal to 9"},
		// D22 of the review of remediation.
		"a step that no target has is refused": {batch("{order: 0, steps: [0, 1], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches"}, "batches must name each target once"},
		"a target in no batch is refused":      {batch("{order: 0, steps: [1], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches"}, "batches must name each target once"},
		"a target in two batches is refused":   {batch("{order: 0, steps: [0], requiresHealthCheck: Enabled}, {order: 1, steps: [0], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches"}, "batches must name each target once"},
		"a batch of another order is refused":  {batch("{order: 1, steps: [0], requiresHealthCheck: Enabled}"), []string{"spec.plan.batches"}, "the order of a batch must be its index"},
		"a delay after a batch is accepted":    {spec: batch("{order: 0, steps: [0], requiresHealthCheck: Enabled, delayAfter: 1m}")},
		// D25 of the review of remediation: the executor took no notice of it.
		"a batch that waits for no health is refused":  {batch("{order: 0, steps: [0], requiresHealthCheck: Disabled}"), []string{"spec.plan.batches[0].requiresHealthCheck"}, "must be Enabled"},
		"a negative delay is refused":                  {batch("{order: 0, steps: [0], requiresHealthCheck: Enabled, delayAfter: -1m}"), []string{"spec.plan.batches[0].delayAfter"}, "a duration such as 1m, from 0s to 24h"},
		"a delay of more than a day is refused":        {batch("{order: 0, steps: [0], requiresHealthCheck: Enabled, delayAfter: 24h1s}"), []string{"spec.plan.batches[0].delayAfter"}, "from 0s to 24h"},
		"a plan without a policy is refused":           {plan("policy: {name: production, uid: p, generation: 1, digest: d}, ", ""), []string{"spec.plan.policy"}, "Required value"},
		"a policy without its digest is refused":       {plan(", digest: d}", "}"), []string{"spec.plan.policy.digest"}, "Required value"},
		"a plan without an environment is refused":     {plan("environmentName: production, ", ""), []string{"spec.plan.environmentName"}, "Required value"},
		"a plan of nobody is refused":                  {plan("requester: alice, ", ""), []string{"spec.plan.requester"}, "Required value"},
		"a plan of an empty name is refused":           {plan("requester: alice", "requester: ''"), []string{"spec.plan.requester"}, "should be at least 1 chars"},
		"a plan that nobody began is refused":          {plan("initiatedBy: system:auto, ", ""), []string{"spec.plan.initiatedBy"}, "Required value"},
		"a plan without a deadline is refused":         {plan("deadlineTime: '2026-01-01T01:00:00Z', ", ""), []string{"spec.plan.deadlineTime"}, "Required value"},
		"a plan without a correlation id is refused":   {plan("correlationID: c, ", ""), []string{"spec.plan.correlationID"}, "Required value"},
		"the groups of who asked are accepted":         {spec: plan("requester: alice, ", "requester: alice, requesterGroups: [sre], ")},
		"more groups than anybody names are refused":   {plan("requester: alice, ", "requester: alice, requesterGroups: ["+repeat(33, "g%d")+"], "), []string{"spec.plan.requesterGroups"}, "must have at most 32 items"},
		"what is left out, and why, is accepted":       {spec: plan("targets:", "leftOut: [{baselineName: b, reason: TooYoung}], leftOutTotal: 1, targets:")},
		"something left out without reason is refused": {plan("targets:", "leftOut: [{baselineName: b}], targets:"), []string{"spec.plan.leftOut[0].reason"}, "Required value"},
		"a strategy that needs traffic is no plan's":   {plan("strategy: Rolling", "strategy: Bluegreen"), []string{"spec.plan.strategy"}, "Unsupported value"},
		"a plan with standbys is accepted":             {spec: plan("strategy: Rolling", "strategy: BlueGreen, standby: {podLabels: {app: standby}}")},
		"a standby with a label of an overlong key":    {plan("strategy: Rolling", "strategy: BlueGreen, standby: {podLabels: {"+strings.Repeat("k", 318)+": a}}"), []string{"spec.plan.standby.podLabels"}, "a label key has 1 to 317 characters"},
		"a standby with a label of Plumbline":          {plan("strategy: Rolling", "strategy: BlueGreen, standby: {podLabels: {plumbline.dev/standby: a}}"), []string{"spec.plan.standby.podLabels"}, "labels of plumbline.dev are set by the executor alone"},
		"no plan at all is refused":                    {"plan: null", []string{"spec.plan"}, "Required value"},
	}
}

func controlCases() map[string]specCase {
	return map[string]specCase{
		"a request with a name is accepted":    {spec: "control: {verb: Pause, requestedBy: alice, reason: r}"},
		"a request taken back, with a name":    {spec: "control: {requestedBy: alice}"},
		"a request of nobody is refused":       {"control: {verb: Cancel}", []string{"spec.control.requestedBy"}, "name yourself, as the API server knows you"},
		"an unknown request is refused":        {"control: {verb: Retry, requestedBy: alice}", []string{"spec.control.verb"}, `supported values: "Execute", "Pause", "Cancel"`},
		"a request of an empty name, refused":  {"control: {verb: Pause, requestedBy: ''}", []string{"spec.control.requestedBy"}, "should be at least 1 chars"},
		"a request with an overlong reason":    {"control: {requestedBy: a, reason: " + strings.Repeat("r", 257) + "}", []string{"spec.control.reason"}, "may not be more than 256"},
		"a request by 1 MiB of name, refused":  {"control: {requestedBy: " + strings.Repeat("u", 1<<20) + "}", []string{"spec.control.requestedBy"}, "may not be more than 1024"},
		"resuming is to leave the request out": {spec: "control: {}"},
	}
}

const planIsImmutable = "a plan never changes; cancel it, and another is made"

func TestRemediationPlan_Transitions(t *testing.T) {
	create(t, object(t, "RemediationPlan", "transitions", smallestPlan))
	runPatchCases(t, "RemediationPlan", "transitions", dryPatch, map[string]patchCase{
		"a person may ask":                    {patch: `{"spec":{"control":{"verb":"Pause","requestedBy":"alice"}}}`},
		"a label may change":                  {patch: `{"metadata":{"labels":{"a":"b"}}}`},
		"another deadline is refused":         {`{"spec":{"plan":{"deadlineTime":"2027-01-01T00:00:00Z"}}}`, []string{"spec.plan"}, planIsImmutable},
		"another requester is refused":        {`{"spec":{"plan":{"requester":"mallory"}}}`, []string{"spec.plan"}, planIsImmutable},
		"more groups are refused":             {`{"spec":{"plan":{"requesterGroups":["system:masters"]}}}`, []string{"spec.plan"}, planIsImmutable},
		"removing what was left out, refused": {`{"spec":{"plan":{"leftOutTotal":3}}}`, []string{"spec.plan"}, planIsImmutable},
		"removing the targets is refused":     {`{"spec":{"plan":{"targets":null}}}`, []string{"spec.plan.targets"}, "Required value"},
		"removing the plan is refused":        {`{"spec":{"plan":null}}`, []string{"spec.plan"}, "Required value"},
		"removing the spec is refused":        {`{"spec":null}`, []string{"spec"}, "Required value"},
	})
}

const (
	executorOfBefore = "an executor of before may not write"
	endedStaysSo     = "a plan that has ended stays so"
	verdictStored    = `"phase":"Succeeded","steps":[{"index":0,"state":"Verified","effect":{"verdict":"Ineffective","assessmentName":"p-0"}}]`
	verdictStays     = "a verdict stays"
	neverGoesBack    = "a step goes back to Planned alone, and no more once it has written; one that has ended stays so"
)

// TestRemediationPlan_Epoch: an executor that another one replaced may not write,
// and what has ended stays so, whatever the executor's bugs.
func TestRemediationPlan_Epoch(t *testing.T) {
	cases := map[string]struct {
		before string
		patchCase
	}{
		"a first executor takes it":                   {``, patchCase{patch: `"epoch":1,"holder":"a"`}},
		"the same executor goes on":                   {`"epoch":3,"phase":"Running"`, patchCase{patch: `"holder":"a"`}},
		"the next executor takes it over":             {`"epoch":3,"phase":"Running"`, patchCase{patch: `"epoch":4`}},
		"an executor of before is refused":            {`"epoch":3,"phase":"Running"`, patchCase{`"epoch":2`, []string{"status"}, executorOfBefore}},
		"removing the epoch is refused":               {`"epoch":3,"phase":"Running"`, patchCase{`"epoch":null`, []string{"status"}, executorOfBefore}},
		"epoch 0 is refused":                          {``, patchCase{`"epoch":0`, []string{"status.epoch"}, "should be greater than or equal to 1"}},
		"an ended plan may tell more":                 {`"phase":"Succeeded"`, patchCase{patch: `"completionTime":"2026-01-01T00:00:00Z"`}},
		"a plan that waits may run":                   {`"phase":"Deferred"`, patchCase{patch: `"phase":"Running","deferralReason":null`}},
		"a sealed plan may be canceled":               {`"phase":"Sealing"`, patchCase{patch: `"phase":"Canceled"`}},
		"an ended plan loses its phase":               {`"phase":"Canceled"`, patchCase{`"phase":null`, []string{"status"}, endedStaysSo}},
		"an unknown phase is refused":                 {``, patchCase{`"phase":"Retrying"`, []string{"status.phase"}, "Unsupported value"}},
		"a condition has one value":                   {``, patchCase{`"conditions":[` + conditionJSON("True") + `,` + conditionJSON("False") + `]`, []string{"status.conditions[1]"}, "Duplicate value"}},
		"more steps than a plan can have are refused": {``, patchCase{`"steps":[` + repeat(11, `{"index":%d,"state":"Planned"}`) + `]`, []string{"status.steps", "status.steps[10].index"}, "must have at most 10 items"}},
		"a step that is counted twice is refused":     {``, patchCase{`"steps":[{"index":0,"state":"Planned"},{"index":0,"state":"Failed"}]`, []string{"status.steps[1]"}, "Duplicate value"}},
		"a result without its hash is refused":        {``, patchCase{`"steps":[{"index":0,"state":"Applied","result":{"resourceVersion":"1","origin":"Response","recordTime":"2026-01-01T00:00:00Z"}}]`, []string{"status.steps[0].result.hash"}, "Required value"}},
		"an intent without its epoch is refused":      {``, patchCase{`"steps":[{"index":0,"state":"Intent","intent":{"storageTime":"2026-01-01T00:00:00Z"}}]`, []string{"status.steps[0].intent.epoch"}, "Required value"}},
		"a step gets its verdict":                     {`"phase":"Succeeded","steps":[{"index":0,"state":"Verified"}]`, patchCase{patch: `"steps":[{"index":0,"state":"Verified","effect":{"verdict":"Effective","score":9580,"assessmentName":"p-0"}}]`}},
		"another verdict is refused":                  {verdictStored, patchCase{`"steps":[{"index":0,"state":"Verified","effect":{"verdict":"Effective","assessmentName":"p-0"}}]`, []string{"status.steps[0].effect"}, verdictStays}},
		"removing the verdict is refused":             {verdictStored, patchCase{`"steps":[{"index":0,"state":"Verified"}]`, []string{"status.steps[0].effect"}, verdictStays}},
		"a score beyond the best is refused":          {``, patchCase{`"steps":[{"index":0,"state":"Verified","effect":{"verdict":"Effective","score":10001,"assessmentName":"p-0"}}]`, []string{"status.steps[0].effect.score"}, "should be less than or equal to 10000"}},
		"an unknown verdict is refused":               {``, patchCase{`"effect":"Splendid"`, []string{"status.effect"}, "Unsupported value"}},
		"an unknown reason is refused":                {``, patchCase{`"steps":[{"index":0,"state":"Skipped","reason":"Bored"}]`, []string{"status.steps[0].reason"}, "Unsupported value"}},
	}
	for _, final := range []string{"Succeeded", "PartialSuccess", "Failed", "Canceled", "Superseded"} {
		cases["from "+final+" back to Running"] = struct {
			before string
			patchCase
		}{`"phase":"` + final + `"`, patchCase{`"phase":"Running"`, []string{"status"}, endedStaysSo}}
	}
	tried := map[string]specCase{"a step that goes back": {"", []string{"status.steps[0].state"}, neverGoesBack}}
	number := 0
	for title, tc := range cases {
		number++
		name := fmt.Sprintf("epoch-%d", number)
		tried[title] = specCase{"", tc.fields, tc.message}
		storePlan(t, name, tc.before)
		runPatchCases(t, "RemediationPlan", name, statusPatch, map[string]patchCase{title: {`{"status":{` + tc.patch + `}}`, tc.fields, tc.message}})
	}
	demandEveryRuleTried(t, "RemediationPlan", "status", tried)
}

// TestRemediationPlan_Steps: every pair of states, against the order that the
// protocol has them in.
func TestRemediationPlan_Steps(t *testing.T) {
	states := []string{"Planned", "Reserved", "Intent", "Applied", "Verified", "Skipped", "Failed", "Fenced"}
	after := map[string]string{
		"Planned":  "Planned Reserved Intent Applied Verified Skipped Failed Fenced",
		"Reserved": "Planned Reserved Intent Applied Verified Skipped Failed Fenced",
		"Intent":   "Planned Intent Applied Verified Skipped Failed Fenced",
		"Applied":  "Applied Verified Failed",
		"Verified": "Verified", "Skipped": "Skipped", "Failed": "Failed", "Fenced": "Fenced",
	}
	for _, from := range states {
		name := "steps-" + strings.ToLower(from)
		storePlan(t, name, `"steps":[{"index":0,"state":"Planned"},{"index":1,"state":"`+from+`"}]`)
		cases := map[string]patchCase{}
		for _, to := range states {
			// A list is a whole in a merge patch; the steps change places, too, because
			// they are told apart by their index.
			tc := patchCase{patch: `{"status":{"steps":[{"index":1,"state":"` + to + `"},{"index":0,"state":"Reserved"}]}}`}
			if !strings.Contains(" "+after[from]+" ", " "+to+" ") {
				tc.fields, tc.message = []string{"status.steps[0].state"}, neverGoesBack
			}
			cases["from "+from+" to "+to] = tc
		}
		runPatchCases(t, "RemediationPlan", name, statusPatch, cases)
	}
}

// storePlan stores a plan with a status.
func storePlan(t *testing.T, name, status string) {
	t.Helper()
	create(t, object(t, "RemediationPlan", name, smallestPlan))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{`+status+`}}`))
	if err := kube.Status().Patch(t.Context(), object(t, "RemediationPlan", name), patch); err != nil {
		t.Fatalf("storing the status %s: %v", status, err)
	}
}

func conditionJSON(status string) string {
	return `{"type":"Ready","status":"` + status + `","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
}
