// SPDX-License-Identifier: Apache-2.0

//go:build integration

package kinds

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// statusPatch dry-runs a merge patch of the status.
func statusPatch(t *testing.T, kind, name, patch string) error {
	t.Helper()
	return kube.Status().Patch(t.Context(), object(t, kind, name), client.RawPatch(types.MergePatchType, []byte(patch)),
		client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// TestBaseline_Status: what Plumbline itself writes is bounded, too; a bug of
// ours is refused and not shown to people as a fact.
func TestBaseline_Status(t *testing.T) {
	create(t, object(t, "Baseline", "status", smallestBaseline))
	const (
		actor   = `"actor":{"class":"Untrusted","source":"None"}`
		finding = `{"path":"","operation":"Added","type":"Unexpected","class":"ObjectUnexpected","firstSeenTime":"2026-01-01T00:00:00Z",` + actor + `}`
	)
	ready := func(status string) string {
		return `{"type":"Ready","status":"` + status + `","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`
	}
	cases := map[string]struct {
		status  string
		fields  []string
		message string
	}{
		"a finding about the whole object is accepted":    {status: `"findings":[` + finding + `]`},
		"all findings that fit are accepted":              {status: `"findings":[` + strings.Repeat(finding+",", 63) + finding + `]`},
		"one more is refused":                             {`"findings":[` + strings.Repeat(finding+",", 64) + finding + `]`, []string{"status.findings"}, "must have at most 64 items"},
		"an unknown state is refused":                     {`"state":"Fine"`, []string{"status.state"}, `supported values: "InSync", "Drifted", "Missing", "Unknown"`},
		"an unknown class is refused":                     {`"findings":[` + strings.Replace(finding, "ObjectUnexpected", "Color", 1) + `]`, []string{"status.findings[0].class"}, "Unsupported value"},
		"an unknown type is refused":                      {`"findings":[` + strings.Replace(finding, `"Unexpected"`, `"Extra"`, 1) + `]`, []string{"status.findings[0].type"}, "Unsupported value"},
		"an unknown source of an actor is refused":        {`"findings":[` + strings.Replace(finding, "None", "Guess", 1) + `]`, []string{"status.findings[0].actor.source"}, "Unsupported value"},
		"a value longer than it is cut to is refused":     {`"findings":[` + strings.Replace(finding, actor, actor+`,"before":"`+strings.Repeat("x", 1025)+`"`, 1) + `]`, []string{"status.findings[0].before"}, "may not be more than 1024"},
		"a score above 100 is refused":                    {`"severity":{"level":"High","score":101}`, []string{"status.severity.score"}, "should be less than or equal to 100"},
		"a level without a score is refused":              {`"severity":{"level":"High"}`, []string{"status.severity.score"}, "Required value"},
		"an unknown level is refused":                     {`"severity":{"level":"Fatal","score":1}`, []string{"status.severity.level"}, "Unsupported value"},
		"an unknown factor is refused":                    {`"severity":{"level":"High","score":1,"factors":[{"name":"Mood","score":1,"weight":1}]}`, []string{"status.severity.factors[0].name"}, "Unsupported value"},
		"an unknown urgency is refused":                   {`"severity":{"level":"High","score":1,"urgency":"Now"}`, []string{"status.severity.urgency"}, "Unsupported value"},
		"a negative generation is refused":                {`"observedGeneration":-1`, []string{"status.observedGeneration"}, "should be greater than or equal to 0"},
		"a condition is True, False or Unknown":           {`"conditions":[` + ready("Maybe") + `]`, []string{"status.conditions[0].status"}, `supported values: "True", "False", "Unknown"`},
		"a condition has one value":                       {`"conditions":[` + ready("True") + `,` + ready("False") + `]`, []string{"status.conditions[1]"}, "Duplicate value"},
		"two masks of one path are refused":               {`"masks":[{"path":"/a","rule":"r",` + actor + `},{"path":"/a","rule":"s",` + actor + `}]`, []string{"status.masks[1]"}, "Duplicate value"},
		"a mask without its rule is refused":              {`"masks":[{"path":"/a",` + actor + `}]`, []string{"status.masks[0].rule"}, "Required value"},
		"a fight that never began is refused":             {`"contention":{"with":["a"]}`, []string{"status.contention.startTime"}, "Required value"},
		"more reversals than are needed are refused":      {`"reversals":[` + repeat(17, `{"observedTime":"2026-01-01T00:00:%02dZ"}`) + `]`, []string{"status.reversals"}, "must have at most 16 items"},
		"a reversal at the object as a whole is accepted": {status: `"reversals":[{"observedTime":"2026-01-01T00:00:00Z","places":[{"aspect":"Value","by":"bob","class":"Untrusted"}]}]`},
		"a reversal that names nobody is accepted":        {status: `"reversals":[{"observedTime":"2026-01-01T00:00:00Z","places":[{"path":"/spec/list","aspect":"Order"}]}]`},
		"a reversal at no time is refused":                {`"reversals":[{"places":[]}]`, []string{"status.reversals[0].observedTime"}, "Required value"},
		"a reversal at more places than count is refused": {`"reversals":[{"observedTime":"2026-01-01T00:00:00Z","places":[` + repeat(17, `{"path":"/a%d","aspect":"Value"}`) + `]}]`, []string{"status.reversals[0].places"}, "must have at most 16 items"},
		"a place without an aspect is refused":            {`"reversals":[{"observedTime":"2026-01-01T00:00:00Z","places":[{"path":"/a"}]}]`, []string{"status.reversals[0].places[0].aspect"}, "Required value"},
		"an unknown aspect of a place is refused":         {`"reversals":[{"observedTime":"2026-01-01T00:00:00Z","places":[{"path":"/a","aspect":"Color"}]}]`, []string{"status.reversals[0].places[0].aspect"}, "Unsupported value"},
		"more contested places than count are refused":    {`"contention":{"startTime":"2026-01-01T00:00:00Z","places":[` + repeat(17, `{"path":"/a%d","aspect":"Value"}`) + `]}`, []string{"status.contention.places"}, "must have at most 16 items"},
		"a state that nobody has determined is no field":  {status: `"state":null`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := statusPatch(t, "Baseline", "status", `{"status":{`+tc.status+`}}`)
			if len(tc.fields) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			assertRefused(t, err, tc.message, tc.fields...)
		})
	}
}

// TestStatusIsASubresource: writers of a spec cannot write the status and the
// other way round, of every kind that has one.
func TestStatusIsASubresource(t *testing.T) {
	for kind, spec := range smallest {
		t.Run(kind, func(t *testing.T) {
			obj := object(t, kind, "subresource", spec)
			field := "observedGeneration"
			if kind == "RemediationLedger" {
				field = "sequence" // its status speaks of no generation
			}
			obj.Object["status"] = map[string]any{field: int64(7)}
			if kind == "BaselineRevision" {
				// It has no status at all: nothing about it is ever observed.
				if err := dryCreate(t, obj); !apierrors.IsBadRequest(err) {
					t.Errorf("got %v, want a refusal of the unknown field", err)
				}
				return
			}
			create(t, obj)
			if _, stored := obj.Object["status"]; stored {
				t.Error("a status came in with the spec")
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":null,"status":{"`+field+`":1}}`))
			if err := kube.Status().Patch(t.Context(), object(t, kind, "subresource"), patch); err != nil {
				t.Fatal(err)
			}
			got := object(t, kind, "subresource")
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
				t.Fatal(err)
			}
			if written, _, err := unstructured.NestedInt64(got.Object, "status", field); err != nil || written != 1 {
				t.Errorf("the status was not written: %v, %v", got.Object["status"], err)
			}
			if _, kept := got.Object["spec"]; !kept {
				t.Error("a write of the status removed the spec")
			}
			if got.GetGeneration() != 1 {
				t.Errorf("generation %d after a write of the status, want 1", got.GetGeneration())
			}
		})
	}
}

// TestKubectlRefusals: what a person reads who applies a wrong guard.
func TestKubectlRefusals(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"an empty selector": {
			smallestGuard + "\n  selector: {}",
			`The SpecGuard "mine" is invalid: spec.selector: Invalid value: an empty selector selects everything and reads like a mistake; leave it out to select everything`,
		},
		"a Secret": {
			"resources: [{apiVersion: v1, kind: Secret}]",
			`The SpecGuard "mine" is invalid: spec.resources[0].kind: Invalid value: Secrets are never guarded: their values would have to be stored`,
		},
		"a misspelt field": {
			smallestGuard + "\n  trustedWriter: {users: [ci]}",
			`unknown field "spec.trustedWriter"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "guard.yaml")
			manifest := fmt.Sprintf("apiVersion: %s\nkind: SpecGuard\nmetadata:\n  name: mine\nspec:\n  %s\n", v1alpha1.GroupVersion, tc.spec)
			if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := child.Bind(exec.CommandContext(t.Context(), filepath.Join(server.BinaryAssetsDirectory, "kubectl"),
				"--kubeconfig", kubeconfig, "--namespace", namespace, "apply", "-f", file)).CombinedOutput()
			if err == nil {
				t.Fatalf("accepted:\n%s", out)
			}
			if !strings.Contains(string(out), tc.want) {
				t.Errorf("got:\n%s\nwant a line with:\n%s", out, tc.want)
			}
		})
	}
}
