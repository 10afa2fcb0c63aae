// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The objects of the examples.
const (
	examplePolicy     = "production-auto-remediation"
	examplePlan       = "shop.production-4c1f9a0d2b"
	exampleRelease    = "shop.web"
	exampleBaseline   = "shop.deployment-web"
	exampleLedger     = "plumbline-system.evidence"
	examplePolicyTag  = `"7c0e1f5a-6f0f-4f55-9d2d-0a6f3a1d1001.4"`
	exampleKey        = "3f0c1e9a-order-7"
	exampleReason     = `{"reason":"INC-9, agreed with ops"}`
	examplePolicyBody = `{"name":"NAME","environmentName":"production","trigger":"age_threshold","minimumSeverity":"high",` +
		`"minimumDriftAge":"00:15:00","action":"reconcile","strategy":"rolling","maxRemediationsPerHour":10,"cooldownPeriod":"00:05:00"}`
	exampleReleaseBody = `{"namespace":"shop","name":"cart","serviceName":"cart","variations":[` +
		`{"name":"A","variation":"stable","workload":{"kind":"Deployment","name":"cart"}},` +
		`{"name":"B","variation":"next","workload":{"kind":"Deployment","name":"cart-next"}}],` +
		`"trafficSplit":{"type":"percentage","percentages":{"A":90,"B":10}}}`
)

// writes are the operations that change objects, and those that tell what would be changed.
func writes() []operation {
	ofPolicies, ofPlans := remediationPath+"/policies", remediationPath+"/plans"
	ofRelease, ofBaseline, ofLedger := releasesPath+"/{id}", Prefix+"/baselines/{id}", remediationPath+"/ledgers/{id}"
	return []operation{
		write(http.MethodPost, ofPolicies, "create-policy", "Create a policy", "Remediation", "", policyBody("nightly"), createPolicy, created, keyed),
		write(http.MethodPut, ofPolicies+"/{id}", "replace-policy", "Replace a policy", "Remediation", examplePolicy, policyBody(examplePolicy), replacePolicy, done, seen),
		write(http.MethodDelete, ofPolicies+"/{id}", "delete-policy", "Delete a policy", "Remediation", examplePolicy, "", deletePolicy, gone, seen),
		write(http.MethodPost, ofPolicies+"/{id}/activate", "activate-policy", "Let a policy act, with the rights of the caller", "Remediation",
			examplePolicy, `{"groups":["sre"],"reason":"INC-9, agreed with ops"}`, setMode(v1alpha1.PolicyModeActive), done),
		write(http.MethodPost, ofPolicies+"/{id}/deactivate", "deactivate-policy", "Let a policy observe alone", "Remediation",
			examplePolicy, exampleReason, setMode(v1alpha1.PolicyModeObserveOnly), done),
		write(http.MethodPost, ofPolicies+"/{id}/halt", "halt-policy", "Stop a policy at once, also its plans under way", "Remediation",
			examplePolicy, exampleReason, setMode(v1alpha1.PolicyModeHalted), done),

		write(http.MethodPost, ofPlans+"/{id}/execute", "execute-plan", "Begin a plan that waits", "Remediation", examplePlan, exampleReason, askPlan(v1alpha1.PlanExecute), asked),
		write(http.MethodPost, ofPlans+"/{id}/pause", "pause-plan", "Begin no further step of a plan", "Remediation", examplePlan, exampleReason, askPlan(v1alpha1.PlanPause), asked),
		write(http.MethodPost, ofPlans+"/{id}/resume", "resume-plan", "Go on with a paused plan", "Remediation", "shop.paused", "", askPlan(actions.PlanResume), asked),
		write(http.MethodPost, ofPlans+"/{id}/cancel", "cancel-plan", "End a plan", "Remediation", examplePlan, exampleReason, askPlan(v1alpha1.PlanCancel), asked),

		write(http.MethodPost, remediationPath+"/preview", "preview-plans", "Tell which plans a policy would make now, and try their writes", "Remediation",
			"", `{"policyId":"production-auto-remediation"}`, previewPlans, done),
		write(http.MethodPost, remediationPath+"/execute", "execute", "Put drifted objects back now, in the name of the caller", "Remediation",
			"", `{"policyId":"production-auto-remediation","targets":["shop.deployment-web"],"reason":"INC-9"}`, execute, asked, keyed),

		write(http.MethodPost, ofLedger+"/halt", "halt-ledger", "Stop all remediation of an Environment", "Remediation", exampleLedger, exampleReason, haltLedger, done),
		write(http.MethodPost, ofLedger+"/unhalt", "unhalt-ledger", "Let remediation go on after a halt", "Remediation", exampleLedger, "", unhaltLedger, done),

		write(http.MethodPost, ofBaseline+"/accept", "accept-baseline", "Authorize the state that the caller has seen", "Drift",
			exampleBaseline, `{"hash":"pl2:aa","reason":"INC-9"}`, acceptBaseline, asked),
		write(http.MethodPost, ofBaseline+"/check", "check-baseline", "Check an object now", "Drift", exampleBaseline, "", checkBaseline, asked),
		write(http.MethodPost, ofBaseline+"/lift", "lift-baseline", "End the quarantine that the caller has seen", "Drift", "shop.deployment-away", `{"token":"plan-0","reason":"INC-9"}`, liftBaseline, asked),

		write(http.MethodPost, releasesPath, "create-ab-release", "Create a release", "Releases", "", exampleReleaseBody, createRelease, created, keyed),
		write(http.MethodPost, ofRelease+"/start", "start-ab-release", "Start a run that waits for a person", "Releases", exampleRelease, "", askPlainly("Start"), asked),
		write(http.MethodPost, ofRelease+"/advance", "advance-ab-release", "Go on to a later stage", "Releases", exampleRelease, `{"stageNumber":2}`, advanceRelease, asked),
		write(http.MethodPost, ofRelease+"/approve", "approve-ab-release", "Approve a stage", "Releases", exampleRelease, `{"runNumber":2,"stageNumber":1}`, askAtStage("Approve"), asked),
		write(http.MethodPost, ofRelease+"/skip", "skip-ab-release", "Skip a stage, against any verdict", "Releases", exampleRelease, `{"runNumber":2,"stageNumber":1}`, askAtStage("Skip"), asked),
		write(http.MethodPost, ofRelease+"/retry", "retry-ab-release", "Try a failed stage or a rejected revision again", "Releases", exampleRelease, exampleReason, askPlainly("Retry"), asked),
		write(http.MethodPost, ofRelease+"/pause", "pause-ab-release", "Keep a run from going forward", "Releases", exampleRelease, "", pauseRelease(v1alpha1.Enabled), done),
		write(http.MethodPost, ofRelease+"/resume", "resume-ab-release", "Let a paused run go on", "Releases", exampleRelease, "", pauseRelease(v1alpha1.Disabled), done),
		write(http.MethodPost, ofRelease+"/promote", "promote-ab-release", "Give all requests to a variation", "Releases", exampleRelease, `{"variation":"B"}`, promoteRelease, asked),
		write(http.MethodPost, ofRelease+"/rollback", "rollback-ab-release", "Return all requests to the active variation", "Releases", exampleRelease, exampleReason, askPlainly("Rollback"), asked),
	}
}

func policyBody(name string) string { return strings.Replace(examplePolicyBody, "NAME", name, 1) }

// trait is what a write has in common with others.
type trait func(*operation)

// created, done, gone and asked are the ways in which writes are answered.
func created(o *operation) { o.status = http.StatusCreated }
func done(o *operation)    { o.status = http.StatusOK }
func gone(o *operation)    { o.status = http.StatusNoContent }
func asked(o *operation)   { o.status, o.soon = http.StatusAccepted, http.StatusOK }

// keyed and seen are the headers of the example.
func keyed(o *operation) { o.headers = map[string]string{"Idempotency-Key": exampleKey} }
func seen(o *operation)  { o.headers = map[string]string{ifMatch: examplePolicyTag} }

// write makes a row for an operation that is no GET.
func write[I, O any](method, path, id, summary, tag, example, body string, do func(context.Context, *server, *I) (*O, error), traits ...trait) operation {
	o := operation{method: method, path: path, id: id, summary: summary, tag: tag, example: exampleOf(path, example), body: body}
	for _, apply := range traits {
		apply(&o)
	}
	return handled(o, patience+maxWait, do)
}
