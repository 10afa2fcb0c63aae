// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

const (
	environmentUID = "2f1c0e5a-90d1-4a44-9d0b-5a1d3f0c4004"
	workUID        = "7be2a3c4-11aa-4c55-8f6e-0d9b2e1f5005"
)

// delivered is a record of a release.
func delivered(kind evidence.Kind, d evidence.Delivery) evidence.Record {
	d.Environment, d.Release = "production", &evidence.Release{Namespace: "shop", Name: "web", UID: "r-1"}
	return evidence.Record{
		Kind: kind, At: noon, Chain: evidence.Chain{UID: environmentUID}, Delivery: &d, Requester: "alice", InitiatedBy: evidence.InitiatedBySystem,
		Subject: evidence.Subject{APIVersion: "plumbline.dev/v1alpha1", Kind: "ABRelease", Namespace: "shop", Name: "web", UID: "r-1", Hash: digest("a")},
		Builder: evidence.Builder{Version: "v0.3.0"},
	}
}

// aWork is a ReleaseWork that wrote the version that follows another one.
func aWork(before string) *evidence.Work {
	return &evidence.Work{
		Name: "web-3-1", UID: workUID, Run: 3, Number: 1, Verb: "Scale", Variation: "canary", Replicas: new(int32(2)), ExpectedHash: pl1("b"),
		Target: &evidence.WorkTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: targetUID},
		Intent: &evidence.WorkIntent{UID: targetUID, ResourceVersion: before, TemplateHash: pl1("c"), At: noon},
	}
}

func ended(w *evidence.Work, origin evidence.Origin) evidence.Record {
	r := delivered(evidence.KindWorkEnded, evidence.Delivery{Work: w})
	r.Result = evidence.Result{State: "Succeeded", Origin: origin}
	if origin != "" {
		r.Result.ResourceVersion, r.Result.Hash = "1001", pl1("c")
	}
	return r
}

func TestDelivery_IsGivenBack(t *testing.T) {
	ofAutoscaler := ended(aWork("1000"), evidence.OriginRecovered)
	ofAutoscaler.Result.Hash = ""
	another := succession()
	another.Policy, another.Delivery, another.Succession = nil, &evidence.Delivery{Environment: "production"}, succeeded("a", "b")
	records := map[string]evidence.Record{
		"a decision": delivered(evidence.KindReleaseDecision, evidence.Delivery{
			Decision: &evidence.Decision{Number: 4, Run: 2, Event: "canary.stage_started", From: "10", To: "25.5", Sequence: 12},
		}),
		"an intent":              delivered(evidence.KindWorkIntended, evidence.Delivery{Work: aWork("1000")}),
		"an end":                 ended(aWork("1000"), evidence.OriginAPIResponse),
		"an end of no write":     ended(&evidence.Work{Name: "web-3-2", UID: "w", Verb: "Scale", Variation: "canary"}, ""),
		"a write without a hash": ofAutoscaler,
		"a gap":                  delivered(evidence.KindHistoryGap, evidence.Delivery{Range: &evidence.Range{First: 2, Last: 9}}),
		"a history set back":     delivered(evidence.KindHistorySetBack, evidence.Delivery{Range: &evidence.Range{First: 9, Last: 3, Next: 1}}),
		"a release that is gone": delivered(evidence.KindReleaseGone, evidence.Delivery{Range: &evidence.Range{First: 9, Last: 9}}),
		"a change of keys":       another,
	}
	for name, r := range records {
		t.Run(name, func(t *testing.T) {
			r = placed(r, 1, "")
			sealed := seal(t, key(t, 1), r)
			opened, err := evidence.Open(keyring(t, key(t, 1)), sealed.Envelope)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, opened.Record); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			var statement struct{ PredicateType string }
			if err := json.Unmarshal(sealed.Payload, &statement); err != nil || statement.PredicateType != evidence.DeliveryPredicateType {
				t.Errorf("the predicate is of type %s, %v", statement.PredicateType, err)
			}
		})
	}
}

func TestDelivery_NamesTheField(t *testing.T) {
	change := func(r evidence.Record, how func(*evidence.Record)) evidence.Record { how(&r); return r }
	decided := delivered(evidence.KindReleaseDecision, evidence.Delivery{Decision: &evidence.Decision{Number: 4, Event: "ab.started"}})
	cases := map[string]struct {
		record evidence.Record
		field  string
	}{
		"no release":           {change(decided, func(r *evidence.Record) { r.Delivery = nil }), "delivery"},
		"no decision":          {delivered(evidence.KindReleaseDecision, evidence.Delivery{}), "delivery.decision"},
		"a decision of a work": {change(ended(aWork("1"), ""), func(r *evidence.Record) { r.Delivery.Decision = decided.Delivery.Decision }), "delivery.decision"},
		"no work":              {change(ended(aWork("1"), ""), func(r *evidence.Record) { r.Delivery.Work = nil }), "delivery.work"},
		"no intent":            {delivered(evidence.KindWorkIntended, evidence.Delivery{Work: &evidence.Work{}}), "delivery.work.intent"},
		"no range":             {delivered(evidence.KindHistoryGap, evidence.Delivery{}), "delivery.range"},
		"a plan's record":      {change(step(0), func(r *evidence.Record) { r.Delivery = decided.Delivery }), "delivery"},
		"a plan":               {change(decided, func(r *evidence.Record) { r.Plan = step(0).Plan }), "delivery"},
		"an event in free text": {change(decided, func(r *evidence.Record) {
			r.Delivery = &evidence.Delivery{Release: r.Delivery.Release, Decision: &evidence.Decision{Number: 1, Event: "it broke"}}
		}), "delivery.decision.event"},
		"a number below 1": {change(decided, func(r *evidence.Record) {
			r.Delivery = &evidence.Delivery{Release: r.Delivery.Release, Decision: &evidence.Decision{Event: "ab.started"}}
		}), "delivery.decision.number"},
		"101 percent": {change(decided, func(r *evidence.Record) {
			r.Delivery = &evidence.Delivery{Release: r.Delivery.Release, Decision: &evidence.Decision{Number: 1, Event: "ab.started", To: "101"}}
		}), "delivery.decision.to"},
		"a write of a decision":  {change(decided, func(r *evidence.Record) { r.Result = step(0).Result }), "result.origin"},
		"an end without a state": {change(ended(aWork("1"), ""), func(r *evidence.Record) { r.Result.State = "" }), "result.state"},
		"a uid with a slash": {change(decided, func(r *evidence.Record) {
			r.Delivery = &evidence.Delivery{Release: &evidence.Release{Namespace: "a", Name: "b", UID: "c/d"}, Decision: r.Delivery.Decision}
		}), "delivery.release.uid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.record.Validate()
			if err == nil || !strings.HasPrefix(err.Error(), "record: "+tc.field+":") {
				t.Errorf("got %v, want the field %s", err, tc.field)
			}
		})
	}
}

// TestOpen_APredicateHasItsOwnContent: a record of a release under the type of a remediation is none.
func TestOpen_APredicateHasItsOwnContent(t *testing.T) {
	sealed := seal(t, key(t, 1), placed(ended(aWork("1000"), ""), 1, ""))
	payload := strings.Replace(string(sealed.Payload), evidence.DeliveryPredicateType, evidence.PredicateType, 1)
	if payload == string(sealed.Payload) {
		t.Fatal("nothing was replaced, so this proves nothing")
	}
	_, err := evidence.Open(keyring(t, key(t, 1)), signed(t, key(t, 1), evidence.PayloadType, []byte(payload)))
	if faultOf(err) != evidence.FaultWrongType {
		t.Errorf("got %v", err)
	}
}

// TestJoin_Works: records of ReleaseWorks, and the writes that are marked as theirs.
func TestJoin_Works(t *testing.T) {
	write := func(id, before, after string, changes ...func(e, request, answer object)) object {
		return event(id, func(e, request, answer object) {
			metadata(request)["labels"] = object{evidence.LabelReleaseWork: workUID}
			metadata(request)["resourceVersion"], metadata(answer)["resourceVersion"] = before, after
			for _, change := range changes {
				change(e, request, answer)
			}
		})
	}
	creation := func(e, request, _ object) {
		e["verb"] = "create"
		delete(metadata(request), "resourceVersion")
		delete(metadata(request), "uid")
	}
	fenced := write("f", "1000", "1001", func(_, request, _ object) {
		metadata(request)["labels"] = object{evidence.LabelReleaseWorkFence: workUID}
	})
	intended := func(before string) evidence.Record {
		return placed(delivered(evidence.KindWorkIntended, evidence.Delivery{Work: aWork(before)}), 1, "")
	}
	wrote := func(before string, origin evidence.Origin) evidence.Record {
		return placed(ended(aWork(before), origin), 2, "")
	}
	elsewhere := intended("1000")
	elsewhere.Delivery.Work.Target.Name = "cart"
	created := aWork("")
	created.Target, created.Intent.UID = &evidence.WorkTarget{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, ""
	creates := placed(delivered(evidence.KindWorkIntended, evidence.Delivery{Work: created}), 1, "")
	bodiless := event("m", func(e, _, _ object) { delete(e, "requestObject"); delete(e, "responseObject"); e["level"] = "Metadata" })
	failed := write("t", "1000", "", func(e, _, _ object) { e["responseStatus"] = object{"code": 504}; delete(e, "responseObject") })
	const without, missing = evidence.ProblemWriteWithoutEvidence, evidence.ProblemEvidenceWithoutWrite
	type report struct {
		Matched, Unchanged, Uncertain int
		Problems                      []evidence.ProblemKind
	}
	problems := func(kinds ...evidence.ProblemKind) []evidence.ProblemKind { return kinds }
	cases := map[string]struct {
		records []evidence.Record
		events  []object
		want    report
	}{
		"a write, its intent and its end":            {[]evidence.Record{intended("1000"), wrote("1000", evidence.OriginAPIResponse)}, []object{write("a", "1000", "1001")}, report{Matched: 1}},
		"a write of which the end is not told yet":   {[]evidence.Record{intended("1000")}, []object{write("a", "1000", "1001")}, report{Matched: 1}},
		"a scale to 0, of which the end alone tells": {[]evidence.Record{wrote("1000", evidence.OriginRecovered)}, []object{write("a", "1000", "1001")}, report{Matched: 1}},
		"an end that did not see its write":          {[]evidence.Record{wrote("1000", "")}, []object{write("a", "1000", "1001")}, report{Matched: 1}},
		"a creation":                                 {[]evidence.Record{creates}, []object{write("a", "", "1001", creation)}, report{Matched: 1}},
		"an intent that was never written":           {[]evidence.Record{intended("1000")}, nil, report{}},
		"a write that no record tells of":            {nil, []object{write("a", "1000", "1001")}, report{Problems: problems(without)}},
		"a write from another version":               {[]evidence.Record{intended("1000")}, []object{write("a", "1002", "1003")}, report{Problems: problems(without)}},
		"a work that wrote again without an intent":  {[]evidence.Record{intended("1000")}, []object{write("a", "1000", "1001"), write("b", "1000", "1002")}, report{Matched: 1, Problems: problems(without)}},
		"a work that intended anew":                  {[]evidence.Record{intended("1000"), intended("1001"), wrote("1001", evidence.OriginAPIResponse)}, []object{write("a", "1001", "1002")}, report{Matched: 1}},
		"an end without a write":                     {[]evidence.Record{intended("1000"), wrote("1000", evidence.OriginRecovered)}, nil, report{Problems: problems(missing)}},
		"a fence of its intent":                      {[]evidence.Record{intended("1000"), wrote("1000", "")}, []object{fenced}, report{Matched: 1}},
		"another object than the record's":           {[]evidence.Record{elsewhere}, []object{write("a", "1000", "1001")}, report{Matched: 1, Problems: problems(evidence.ProblemMismatch)}},
		"a log at level Metadata":                    {[]evidence.Record{wrote("1000", evidence.OriginAPIResponse)}, []object{bodiless}, report{Problems: problems(evidence.ProblemAuditLevel)}},
		"a timeout that was stored":                  {[]evidence.Record{intended("1000"), wrote("1000", evidence.OriginRecovered)}, []object{failed}, report{Matched: 1}},
		"a timeout that no record tells of":          {nil, []object{failed}, report{Uncertain: 1}},
		"the records of another work":                {[]evidence.Record{change(intended("1000"), func(w *evidence.Work) { w.UID = "other" })}, []object{write("a", "1000", "1001")}, report{Problems: problems(without)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := evidence.Join(tc.records, readAudit(t, ours, lines(t, tc.events...)), evidence.JoinOptions{Since: noon.Add(-time.Hour)})
			have := report{Matched: got.Matched, Unchanged: got.Unchanged, Uncertain: got.Uncertain}
			for _, p := range got.Problems {
				have.Problems = append(have.Problems, p.Kind)
			}
			if diff := cmp.Diff(tc.want, have); diff != "" {
				t.Errorf("(-want +got)\n%s\n%v", diff, got.Problems)
			}
		})
	}
}

func change(r evidence.Record, how func(*evidence.Work)) evidence.Record {
	how(r.Delivery.Work)
	return r
}
