// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	smallestLedger   = `scope: Environment`
	scopeIsImmutable = "scope is immutable"
	neverBack        = "a ledger never goes back"
)

func TestRemediationLedger_Fields(t *testing.T) {
	cases := map[string]specCase{
		"the ledger of an Environment is accepted":  {},
		"the ledger of the cluster is accepted":     {spec: "scope: Cluster"},
		"an unknown scope is refused":               {"scope: Namespace", []string{"spec.scope"}, `supported values: "Environment", "Cluster"`},
		"no scope is refused":                       {"scope: null", []string{"spec.scope"}, "Required value"},
		"a halt with a name and reason is accepted": {spec: "halt: {requestedBy: alice, reason: incident}"},
		"a halt of nobody is refused":               {"halt: {reason: incident}", []string{"spec.halt.requestedBy"}, "Required value"},
		"a halt without a reason is refused":        {"halt: {requestedBy: alice}", []string{"spec.halt.reason"}, "Required value"},
		"a halt of an empty name is refused":        {"halt: {requestedBy: '', reason: r}", []string{"spec.halt.requestedBy"}, "should be at least 1 chars"},
		"a halt with an overlong reason is refused": {"halt: {requestedBy: a, reason: " + strings.Repeat("r", 257) + "}", []string{"spec.halt.reason"}, "may not be more than 256"},
		"a grant with a name and reason":            {spec: "override: {requestedBy: alice, reason: restored}"},
		"a grant of nobody is refused":              {"override: {reason: restored}", []string{"spec.override.requestedBy"}, "Required value"},
		"a grant without a reason is refused":       {"override: {requestedBy: alice}", []string{"spec.override.reason"}, "Required value"},
		"a grant by 1 MiB of name is refused":       {"override: {reason: r, requestedBy: " + strings.Repeat("u", 1<<20) + "}", []string{"spec.override.requestedBy"}, "may not be more than 1024"},
	}
	runSpecCases(t, "RemediationLedger", smallestLedger, cases)
	// Tried by TestRemediationLedger_Transitions, because it needs a stored ledger.
	cases["the scope is immutable"] = specCase{"", []string{"spec.scope"}, scopeIsImmutable}
	demandEveryRuleTried(t, "RemediationLedger", "spec", cases)
}

func TestRemediationLedger_Transitions(t *testing.T) {
	create(t, object(t, "RemediationLedger", "transitions", smallestLedger, "halt: {requestedBy: alice, reason: r}"))
	runPatchCases(t, "RemediationLedger", "transitions", dryPatch, map[string]patchCase{
		"a halt may be lifted":          {patch: `{"spec":{"halt":null}}`},
		"another scope is refused":      {`{"spec":{"scope":"Cluster"}}`, []string{"spec.scope"}, scopeIsImmutable},
		"removing the scope is refused": {`{"spec":{"scope":null}}`, []string{"spec.scope"}, "Required value"},
		"removing the spec is refused":  {`{"spec":null}`, []string{"spec"}, "Required value"},
	})
}

// TestRemediationLedger_Status: what is counted, and that it never goes back.
func TestRemediationLedger_Status(t *testing.T) {
	const (
		entry   = `{"namespace":"shop","planName":"p","planUID":"u","step":0,"policyUID":"pu","targetUID":"tu","reservationTime":"2026-01-01T00:00:00Z"}`
		breaker = `{"policyUID":"pu","state":"Closed"}`
		chain   = `{"policyUID":"pu","sequence":1,"digest":"sha256:aa"}`
	)
	changed := func(of, from, to string) string { return strings.Replace(of, from, to, 1) }
	create(t, object(t, "RemediationLedger", "status", smallestLedger))
	written := client.RawPatch(types.MergePatchType, []byte(`{"status":{"sequence":9007199254740993,"entries":[`+entry+`]}}`))
	if err := kube.Status().Patch(t.Context(), object(t, "RemediationLedger", "status"), written); err != nil {
		t.Fatal(err)
	}
	cases := map[string]patchCase{
		"the next write is accepted":                 {patch: `"sequence":9007199254740994`},
		"a write of before is refused":               {`"sequence":9007199254740992`, []string{"status.sequence"}, neverBack},
		"beginning again is refused":                 {`"sequence":1`, []string{"status.sequence"}, neverBack},
		"sequence 0 is refused":                      {`"sequence":0`, []string{"status.sequence"}, "should be greater than or equal to 1"},
		"all entries that fit are accepted":          {patch: `"entries":[` + strings.Repeat(entry+",", 1023) + entry + `]`},
		"one more is refused":                        {`"entries":[` + strings.Repeat(entry+",", 1024) + entry + `]`, []string{"status.entries"}, "must have at most 1024 items"},
		"an entry that has ended is accepted":        {patch: `"entries":[` + changed(entry, `"step":0`, `"step":9,"completionTime":"2026-01-01T00:01:00Z","outcome":"Succeeded"`) + `]`},
		"an unknown outcome is refused":              {`"entries":[` + changed(entry, `"step":0`, `"step":0,"outcome":"Maybe"`) + `]`, []string{"status.entries[0].outcome"}, "Unsupported value"},
		"an entry of step 10 is refused":             {`"entries":[` + changed(entry, `"step":0`, `"step":10`) + `]`, []string{"status.entries[0].step"}, "should be less than or equal to 9"},
		"an entry without its plan's uid is refused": {`"entries":[` + changed(entry, `"planUID":"u",`, ``) + `]`, []string{"status.entries[0].planUID"}, "Required value"},
		"an entry of no time is refused":             {`"entries":[` + changed(entry, `,"reservationTime":"2026-01-01T00:00:00Z"`, ``) + `]`, []string{"status.entries[0].reservationTime"}, "Required value"},
		"a breaker is accepted":                      {patch: `"breakers":[` + breaker + `]`},
		"two breakers of one policy are refused":     {`"breakers":[` + breaker + `,` + breaker + `]`, []string{"status.breakers[1]"}, "Duplicate value"},
		"an unknown state of a breaker is refused":   {`"breakers":[` + changed(breaker, "Closed", "Ajar") + `]`, []string{"status.breakers[0].state"}, "Unsupported value"},
		"more breakers than fit are refused":         {`"breakers":[` + repeat(257, `{"policyUID":"p%d","state":"Open"}`) + `]`, []string{"status.breakers"}, "must have at most 256 items"},
		"a chain is accepted":                        {patch: `"chains":[` + chain + `]`},
		"two chains of one policy are refused":       {`"chains":[` + chain + `,` + chain + `]`, []string{"status.chains[1]"}, "Duplicate value"},
		"a chain without its digest is refused":      {`"chains":[` + changed(chain, `,"digest":"sha256:aa"`, ``) + `]`, []string{"status.chains[0].digest"}, "Required value"},
		"a chain that has not begun is refused":      {`"chains":[` + changed(chain, `"sequence":1`, `"sequence":0`) + `]`, []string{"status.chains[0].sequence"}, "should be greater than or equal to 1"},
	}
	tried, wrapped := map[string]specCase{}, map[string]patchCase{}
	for title, tc := range cases {
		tried[title] = specCase{"", tc.fields, tc.message}
		wrapped[title] = patchCase{fmt.Sprintf(`{"status":{%s}}`, tc.patch), tc.fields, tc.message}
	}
	runPatchCases(t, "RemediationLedger", "status", statusPatch, wrapped)
	demandEveryRuleTried(t, "RemediationLedger", "status", tried)
}
