// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// An update costs one call, so the call that stamps must give the answer and the record
// of the validating webhook.
func TestAnUpdateIsJudgedByTheCallThatStamps(t *testing.T) {
	changed := deployment(t, image("evil/web:9"))
	tests := map[string]*admission.Review{
		"a foreign change":                 update(alice, changed, deployment(t)),
		"a trusted change":                 update(ci, changed, deployment(t)),
		"an expected change":               update(hpa, deployment(t, set("spec.replicas", 5)), deployment(t)),
		"a change that is put back":        update(executor, changed, deployment(t)),
		"a label":                          update(alice, deployment(t, set("metadata.labels.x", "y")), deployment(t)),
		"a forged uid and writer":          update(alice, deployment(t, image("x:2"), set("metadata.uid", "forged"), annotations(writerKey, ci)), deployment(t)),
		"an object of another namespace":   func() *admission.Review { r := update(alice, changed, deployment(t)); r.Namespace = "other"; return r }(),
		"an object that cannot be hashed":  update(alice, []byte(`{"metadata":{"name":"web"},"spec":{"a":1,"a":2}}`), deployment(t)),
		"no object of before":              update(alice, changed, nil),
		"a change of a kind that has none": update(alice, deployment(t, image("x:2"), set("metadata.generation", nil)), deployment(t, set("metadata.generation", nil))),
	}
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			stamping, stamped := newReviewer(t, nil)
			validating, validated := newReviewer(t, nil)
			got, want := stamping.Mutate(r), validating.Validate(r)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(admission.Answer{}, "Patch", "Err")); diff != "" {
				t.Errorf("answers (-validate +mutate)\n%s", diff)
			}
			if diff := cmp.Diff(validated.records, stamped.records, cmpopts.IgnoreFields(specguard.WriteRecord{}, "Generation")); diff != "" {
				t.Errorf("records (-validate +mutate)\n%s", diff)
			}
			dry, before := *r, len(stamped.records)
			dry.DryRun = true
			if diff := cmp.Diff(got, stamping.Mutate(&dry), cmpopts.IgnoreFields(admission.Answer{}, "Err")); diff != "" {
				t.Errorf("a dry run is answered otherwise (-want +got)\n%s", diff)
			}
			if len(stamped.records) != before {
				t.Error("a dry run left a record")
			}
		})
	}
}

// The API server counts generations after the mutating stage.
func TestTheRecordOfAnUpdateNamesTheGenerationToCome(t *testing.T) {
	tests := map[string]struct {
		object, old []byte
		want        int64
	}{
		"of an object that a client sent without one": {deployment(t, image("x:2"), set("metadata.generation", nil)), deployment(t, set("metadata.generation", 4)), 5},
		"of an object with a forged one":              {deployment(t, image("x:2"), set("metadata.generation", 99)), deployment(t, set("metadata.generation", 4)), 5},
		"of a kind without generations":               {deployment(t, image("x:2"), set("metadata.generation", 7)), deployment(t, set("metadata.generation", nil)), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer, rec := newReviewer(t, nil)
			reviewer.Mutate(update(alice, tc.object, tc.old))
			if len(rec.records) != 1 || rec.records[0].Generation != tc.want {
				t.Errorf("records %+v, want one of generation %d", rec.records, tc.want)
			}
		})
	}
}

// Where the webhook stamps the writer, the record of the stored object proves the stamp.
func TestUpdatesAreRecordedByValidateWhereTheWebhookStampsTheWriter(t *testing.T) {
	reviewer, rec := newReviewer(t, nil)
	reviewer.StampWriter = true
	r := update(alice, deployment(t, image("x:2")), deployment(t))
	if a := reviewer.Mutate(r); a.Verdict != VerdictStamped || len(rec.records) != 0 {
		t.Errorf("verdict %q, %d records of the mutating call", a.Verdict, len(rec.records))
	}
	if a := reviewer.Validate(r); a.Verdict != VerdictWarn || len(rec.records) != 1 {
		t.Errorf("verdict %q, %d records of the validating call", a.Verdict, len(rec.records))
	}
}
