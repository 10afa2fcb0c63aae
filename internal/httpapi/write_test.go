// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

func causeOf(message string) metav1.StatusCause { return metav1.StatusCause{Message: message} }

func TestAWriteIsRefusedWithAProblem(t *testing.T) {
	targets := func(n int) string {
		return `{"policyId":"` + examplePolicy + `","targets":[` + strings.TrimSuffix(strings.Repeat(`"shop.deployment-web",`, n), ",") + `]}`
	}
	const put, post = http.MethodPut, http.MethodPost
	release := releasesPath + "/shop.web"
	plan := remediationPath + "/plans/" + examplePlan
	tests := map[string]struct {
		method, target, body string
		problem              wire.ProblemType
		location             string
	}{
		"no body":                            {post, policiesPath, "", wire.Invalid, ""},
		"no object":                          {post, policiesPath, "[]", wire.Invalid, "body"},
		"two objects":                        {post, policiesPath, policyBody("a") + policyBody("a"), wire.Invalid, "body"},
		"a body that ends early":             {post, policiesPath, `{"name":`, wire.Invalid, "body"},
		"a field twice":                      {post, policiesPath, acting(`"name":"b"`), wire.Invalid, "body"},
		"an unknown field":                   {post, policiesPath, acting(`"triger":"manual"`), wire.Invalid, "body.triger"},
		"a field in another case":            {post, policiesPath, acting(`"maxtargets":1`), wire.Invalid, "body.maxtargets"},
		"an unknown field of an item":        {post, policiesPath, acting(`"notifications":{"channels":[{"type":"slack","typ":"a"}]}`), wire.Invalid, "body.notifications.channels[0].typ"},
		"a word that is none":                {post, policiesPath, acting(`"mode":"Active"`), wire.Invalid, "body.mode"},
		"a duration that is none":            {post, policiesPath, acting(`"maximumDriftAge":"5 minutes"`), wire.Invalid, "body.maximumDriftAge"},
		"a duration that is too long":        {post, policiesPath, acting(`"maximumDriftAge":"999999.00:00:00"`), wire.Invalid, "body"},
		"a number that is a text":            {post, policiesPath, acting(`"maxTargets":"3"`), wire.Invalid, "body.maxTargets"},
		"a policy without a name":            {post, policiesPath, `{"environmentName":"production"}`, wire.Invalid, "body"},
		"an Environment that is none":        {post, policiesPath, acting(`"environmentId":"e0000000-0000-4000-8000-00000000000f"`), wire.Invalid, "body.environmentId"},
		"two Environments":                   {post, policiesPath, strings.Replace(acting(`"environmentId":"e0000000-0000-4000-8000-000000000001"`), `"production"`, `"staging"`, 1), wire.Invalid, "body.environmentId"},
		"groups of another user":             {post, policiesPath, acting(`"mode":"active","requestedByGroups":["root"]`), wire.Invalid, "body.requestedByGroups"},
		"an unknown query":                   {post, policiesPath + "?dryRun=true", policyBody("nightly"), wire.BadRequest, "query.dryRun"},
		"a new name of a policy":             {put, policyPath, policyBody("nightly"), wire.Invalid, "body.name"},
		"a policy that is none":              {put, policiesPath + "/none", policyBody("none"), wire.NotFound, ""},
		"groups that the caller is not in":   {post, policyPath + "/activate", `{"groups":["root"]}`, wire.Invalid, "body.groups"},
		"a reason that is too long":          {post, policyPath + "/activate", `{"reason":"` + strings.Repeat("a", 257) + `"}`, wire.Invalid, "body.reason"},
		"a verb that is none":                {post, plan + "/delete", "", wire.NotFound, ""},
		"groups for a plan":                  {post, plan + "/execute", `{"groups":["sre"]}`, wire.Invalid, "body.groups"},
		"a plan that has ended":              {post, remediationPath + "/plans/shop.ended/cancel", "", wire.Refused, ""},
		"a plan that is to be canceled":      {post, remediationPath + "/plans/" + planID + "/execute", "", wire.Refused, ""},
		"a plan that is not paused":          {post, plan + "/resume", "", wire.Refused, ""},
		"no targets":                         {post, remediationPath + "/execute", `{"policyId":"` + examplePolicy + `","targets":[]}`, wire.Invalid, "body.targets"},
		"targets that are absent":            {post, remediationPath + "/execute", `{"policyId":"` + examplePolicy + `"}`, wire.Invalid, "body"},
		"targets that are null":              {post, remediationPath + "/execute", `{"policyId":"` + examplePolicy + `","targets":null}`, wire.Invalid, "body.targets"},
		"101 targets":                        {post, remediationPath + "/execute", targets(101), wire.Invalid, "body.targets"},
		"a target twice":                     {post, remediationPath + "/execute", targets(2), wire.Invalid, "body.targets[1]"},
		"a target that is none":              {post, remediationPath + "/execute", strings.Replace(targets(1), "deployment-web", "none", 1), wire.Invalid, "body.targets[0]"},
		"a policy of targets that is none":   {post, remediationPath + "/execute", strings.Replace(targets(1), examplePolicy, "none", 1), wire.Invalid, "body.policyId"},
		"no policy to preview":               {post, remediationPath + "/preview", `{}`, wire.Invalid, "body"},
		"two policies to preview":            {post, remediationPath + "/preview", `{"policyId":"a","policy":` + policyBody("a") + `}`, wire.Invalid, "body"},
		"a policy to preview that is none":   {post, remediationPath + "/preview", `{"policyId":"none"}`, wire.Invalid, "body.policyId"},
		"no targets to preview":              {post, remediationPath + "/preview", `{"policyId":"` + examplePolicy + `","targets":[]}`, wire.Invalid, "body.targets"},
		"a state that was not seen":          {post, Prefix + "/baselines/shop.deployment-web/accept", `{"hash":"pl2:cc"}`, wire.Refused, ""},
		"no state":                           {post, Prefix + "/baselines/shop.deployment-web/accept", `{}`, wire.Invalid, "body"},
		"a body for a check":                 {post, Prefix + "/baselines/shop.none/check", `{}`, wire.NotFound, ""},
		"a release without a namespace":      {post, releasesPath, strings.Replace(exampleReleaseBody, `"namespace":"shop",`, "", 1), wire.Invalid, "body.namespace"},
		"a release of another Environment":   {post, releasesPath, strings.Replace(exampleReleaseBody, "{", `{"environmentId":"staging",`, 1), wire.Invalid, "body.environmentId"},
		"percentages of no variation":        {post, releasesPath, strings.Replace(exampleReleaseBody, `"B":10}`, `"C":10}`, 1), wire.Invalid, "body"},
		"variations in another order":        {post, releasesPath, strings.Replace(exampleReleaseBody, `"name":"A"`, `"name":"B"`, 1), wire.Invalid, "body"},
		"a variation of another letter":      {post, releasesPath, strings.Replace(exampleReleaseBody, `"name":"A"`, `"name":"Z"`, 1), wire.Invalid, "body.variations[0].name"},
		"a release without variations":       {post, releasesPath, `{"namespace":"shop","name":"a","trafficSplit":{"type":"percentage","percentages":{}}}`, wire.Invalid, "body"},
		"a stage that is not there":          {post, release + "/advance", `{"stageNumber":3}`, wire.Invalid, "body.stageNumber"},
		"a stage before the first":           {post, release + "/advance", `{"stageNumber":0}`, wire.Invalid, "body.stageNumber"},
		"a stage that is a part":             {post, release + "/advance", `{"stageNumber":1.5}`, wire.Invalid, "body.stageNumber"},
		"another run is approved":            {post, release + "/approve", `{"runNumber":1}`, wire.Refused, ""},
		"a variation that is none":           {post, release + "/promote", `{"variation":"C"}`, wire.Invalid, "body.variation"},
		"a variation by its name":            {post, release + "/promote", `{"variation":"next"}`, wire.Invalid, "body.variation"},
		"no variation":                       {post, release + "/promote", `{}`, wire.Invalid, "body"},
		"a release that is none":             {post, releasesPath + "/shop.none/rollback", "", wire.NotFound, ""},
		"a method that no operation has":     {"PATCH", policyPath, "", wire.NotFound, ""},
		"a write of a path that reads alone": {post, Prefix + "/guards", "{}", wire.NotFound, ""},
	}
	a := newAnswers(t, newCluster(t, refusingWrites(t), shopAtWork(t)...))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := &answers{API: a.API, t: t}
			a.wantProblem(a.send(tc.method, tc.target, tc.body, ifMatch, "*"), tc.problem, tc.location)
		})
	}
}

func TestAWriteOfAnUnknownCallerIsRefused(t *testing.T) {
	for _, user := range []string{"", anonymous} {
		c := newCluster(t, refusingWrites(t), shopAtWork(t)...)
		c.user = authenticationv1.UserInfo{Username: user}
		a := newAnswers(t, c)
		for _, o := range writes() {
			// These write no name. The API server knows the caller.
			if !slices.Contains([]string{"delete-policy", "check-baseline", "preview-plans"}, o.id) {
				a.wantProblem(a.sendExample(&o), wire.Unauthenticated, "")
			}
		}
	}
}

func TestTheWaitOfACallerIsRead(t *testing.T) {
	tests := map[string]struct {
		prefer  string
		seconds int
		found   bool
	}{
		"no preference":            {"", 0, false},
		"a wait":                   {"wait=10", 10, true},
		"another case and spaces":  {" Wait = 10 ", 10, true},
		"a wait in quotes":         {`wait="10"`, 10, true},
		"a wait behind another":    {"respond-async, wait=5", 5, true},
		"a wait with a parameter":  {"wait=5; foo", 5, true},
		"another preference":       {"return=minimal", 0, false},
		"a preference that begins": {"waiting=5", 0, false},
		"no number":                {"wait=soon", -1, true},
		"no value":                 {"wait", -1, true},
		"less than no time":        {"wait=-5", -1, true},
		"a number without end":     {"wait=99999999999999999999", -1, true},
		"the first of two":         {"wait=1, wait=2", 1, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if seconds, found := waitOf(tc.prefer); seconds != tc.seconds || found != tc.found {
				t.Errorf("%q is %d, %t; want %d, %t", tc.prefer, seconds, found, tc.seconds, tc.found)
			}
		})
	}
}

func TestAWaitThatIsTooLongIsRefused(t *testing.T) {
	a := newAnswers(t, newCluster(t, refusingWrites(t), shopAtWork(t)...))
	for _, prefer := range []string{"wait=3600", "wait=21", "wait=soon"} {
		a.wantProblem(a.send(http.MethodPost, remediationPath+"/plans/"+examplePlan+"/cancel", "", "Prefer", prefer), wire.BadRequest, "header.Prefer")
	}
}

func FuzzWait(f *testing.F) {
	for _, prefer := range []string{"", "wait=10", `wait="10";a, b`, "WAIT=,wait=3"} {
		f.Add(prefer)
	}
	f.Fuzz(func(t *testing.T, prefer string) {
		seconds, found := waitOf(prefer)
		if seconds < -1 || !found && seconds != 0 {
			t.Errorf("%q is %d, %t", prefer, seconds, found)
		}
		w := Waiting{Prefer: prefer}
		if errs := w.Resolve(nil); len(errs) == 0 && (w.wait < 0 || w.wait > maxWait) {
			t.Errorf("%q waits for %s", prefer, w.wait)
		}
	})
}

// FuzzWrite sends bodies to each operation. None of them is a defect of Plumbline.
func FuzzWrite(f *testing.F) {
	all := writes()
	for i := range all {
		f.Add(i, all[i].body, `"a"`)
	}
	f.Fuzz(func(t *testing.T, i int, body, header string) {
		o := all[max(i, -i-1)%len(all)]
		a := newAnswers(t, newCluster(t, interceptor.Funcs{}, shopAtWork(t)...))
		w := a.send(o.method, o.example, body, ifMatch, header, "Idempotency-Key", header, "Prefer", "wait=0")
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s: %s: %d %s\n%s", o.id, body, w.Code, w.Body, a.log.String())
		}
	})
}
