// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// TestJoin: records and writes, and what is wrong with them together.
func TestJoin(t *testing.T) {
	write := func(id, after, plan, step string) object {
		return event(id, func(_, request, answer object) {
			metadata(answer)["resourceVersion"] = after
			delete(metadata(request), "resourceVersion")
			metadata(request)["labels"] = object{evidence.LabelPlan: plan, evidence.LabelStep: step}
		})
	}
	left := func(index int32, version string) evidence.Record {
		r := placed(step(index), int64(index)+1, "")
		r.Result.ResourceVersion = version
		return r
	}
	recovered := func(index int32, version string) evidence.Record {
		r := left(index, version)
		r.Result.Origin = evidence.OriginRecovered
		return r
	}
	fence := func(version string) evidence.Record {
		r := left(0, version)
		r.Kind = evidence.KindFence
		return r
	}
	fenced := event("f", func(_, request, answer object) {
		metadata(request)["labels"] = object{evidence.LabelFence: planUID + ".0"}
		metadata(answer)["resourceVersion"] = "1002"
	})
	standby := func(version string) evidence.Record {
		r := left(0, version)
		r.Kind = evidence.KindStandby
		return r
	}
	standsBy := event("s", func(_, request, answer object) {
		metadata(request)["labels"] = object{evidence.LabelStandby: planUID + ".0.1"}
		metadata(answer)["resourceVersion"] = "1002"
	})
	requestOnly := func(id string) object { return event(id, func(e, _, _ object) { delete(e, "responseObject") }) }
	bodiless := event("m", func(e, _, _ object) { delete(e, "requestObject"); delete(e, "responseObject"); e["level"] = "Metadata" })
	failedWith := func(code int) object {
		return event("t", func(e, _, _ object) { e["responseStatus"] = object{"code": code}; delete(e, "responseObject") })
	}
	deleted := event("d", func(e, request, _ object) {
		e["verb"], e["responseObject"] = "delete", object{"kind": "Status", "status": "Success"}
		delete(metadata(request), "labels")
	})
	deletedBodiless := event("d", func(e, _, _ object) {
		e["verb"] = "delete"
		delete(e, "requestObject")
		delete(e, "responseObject")
	})
	gone := left(0, "1005")
	gone.Subject.Hash, gone.Result.Hash = "absent", "absent"
	ofCore := left(0, "1001")
	ofCore.Subject.APIVersion, ofCore.Subject.Kind = "v1", "ConfigMap"
	inCore := func(group string) object {
		return event("a", func(e, request, answer object) {
			e["objectRef"].(object)["apiGroup"], e["objectRef"].(object)["resource"] = group, "configmaps"
			answer["kind"], metadata(answer)["resourceVersion"] = "ConfigMap", "1001"
		})
	}
	elsewhere := left(0, "1001")
	elsewhere.Subject.Name = "cart"
	skipped := left(4, "")
	skipped.Result = evidence.Result{State: "Skipped"}

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
		"nothing at all":                         {nil, nil, report{}},
		"a write and its record":                 {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1}},
		"records that wrote nothing":             {[]evidence.Record{skipped, decision(evidence.KindPlanCreated, 0)}, nil, report{}},
		"a write without evidence":               {nil, []object{write("a", "1001", planUID, "0")}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"evidence without a write":               {[]evidence.Record{left(0, "1001")}, nil, report{Problems: problems(evidence.ProblemEvidenceWithoutWrite)}},
		"a record of another version":            {[]evidence.Record{left(0, "1009")}, []object{write("a", "1001", planUID, "0")}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence, evidence.ProblemEvidenceWithoutWrite)}},
		"a step that wrote twice":                {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), write("b", "1002", planUID, "0")}, report{Matched: 1, Problems: problems(evidence.ProblemSeveralWrites)}},
		"a step that wrote the same twice":       {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), write("b", "1001", planUID, "0")}, report{Matched: 1, Unchanged: 1}},
		"a write that changed nothing":           {nil, []object{event("a", func(_, request, _ object) { metadata(request)["resourceVersion"] = "1001" })}, report{Unchanged: 1}},
		"an unmarked write, known by version":    {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", "", "")}, report{Matched: 1}},
		"another object than the record's":       {[]evidence.Record{elsewhere}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1, Problems: problems(evidence.ProblemMismatch)}},
		"an object of the core group":            {[]evidence.Record{ofCore}, []object{inCore("")}, report{Matched: 1}},
		"the same name in another group":         {[]evidence.Record{ofCore}, []object{inCore("example.com")}, report{Matched: 1, Problems: problems(evidence.ProblemMismatch)}},
		"a recovered step, at a later version":   {[]evidence.Record{recovered(0, "1044")}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1}},
		"a recovered step that never wrote":      {[]evidence.Record{recovered(0, "1044")}, nil, report{Problems: problems(evidence.ProblemEvidenceWithoutWrite)}},
		"a timeout that was stored":              {[]evidence.Record{recovered(0, "1044")}, []object{failedWith(504)}, report{Matched: 1}},
		"a timeout that was not":                 {nil, []object{failedWith(504)}, report{Uncertain: 1}},
		"a timeout, and the retry that wrote":    {[]evidence.Record{left(0, "1001")}, []object{failedWith(504), write("a", "1001", planUID, "0")}, report{Matched: 1, Uncertain: 1}},
		"a log at level Request":                 {[]evidence.Record{left(0, "1001")}, []object{requestOnly("a")}, report{Matched: 1}},
		"two writes at level Request":            {[]evidence.Record{left(0, "1001")}, []object{requestOnly("a"), requestOnly("b")}, report{Matched: 1, Problems: problems(evidence.ProblemSeveralWrites)}},
		"a log at level Metadata":                {[]evidence.Record{left(0, "1001")}, []object{bodiless}, report{Problems: problems(evidence.ProblemAuditLevel)}},
		"a fence and its record":                 {[]evidence.Record{fence("1002")}, []object{fenced}, report{Matched: 1}},
		"a fence that conflicts with its step":   {[]evidence.Record{fence("1002"), recovered(0, "1002")}, []object{write("a", "1001", planUID, "0"), fenced}, report{Matched: 2}},
		"a standby and its record":               {[]evidence.Record{standby("1002")}, []object{standsBy}, report{Matched: 1}},
		"a standby beside the write of its step": {[]evidence.Record{standby("1002"), recovered(0, "1001")}, []object{standsBy, write("a", "1001", planUID, "0")}, report{Matched: 2}},
		"a standby without a record":             {nil, []object{standsBy}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"a fence without a record":               {nil, []object{fenced}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"a deletion and its record":              {[]evidence.Record{gone}, []object{deleted}, report{Matched: 1}},
		"a deletion in a log without bodies":     {[]evidence.Record{gone}, []object{deletedBodiless}, report{Matched: 1}},
		"a deletion that no record tells of":     {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), deleted}, report{Matched: 1, Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"a deletion of something else": {[]evidence.Record{gone}, []object{event("d", func(e, request, _ object) {
			e["verb"], e["responseObject"] = "delete", object{"kind": "Status"}
			e["objectRef"].(object)["name"] = "cart"
			delete(metadata(request), "labels")
		})}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence, evidence.ProblemEvidenceWithoutWrite)}},
		"one version told by two answers, of which one failed": {[]evidence.Record{left(0, "1001")}, []object{
			event("p", func(e, _, _ object) { e["responseStatus"] = object{"code": 500} }), write("a", "1001", planUID, "0"),
		}, report{Matched: 1, Uncertain: 1}},
		"a failed request that tells the version of a record": {
			[]evidence.Record{left(0, "1001")}, []object{event("p", func(e, _, _ object) { e["responseStatus"] = object{"code": 500} })}, report{Matched: 1},
		},
		"two steps on one object": {[]evidence.Record{left(0, "1001"), left(1, "1002")}, []object{write("b", "1002", planUID, "1"), write("a", "1001", planUID, "0")}, report{Matched: 2}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := evidence.Join(tc.records, readAudit(t, ours, lines(t, tc.events...)), evidence.JoinOptions{})
			var kinds []evidence.ProblemKind
			for _, p := range got.Problems {
				kinds = append(kinds, p.Kind)
				if p.String() == "" {
					t.Errorf("%s without a sentence", p.Kind)
				}
			}
			if diff := cmp.Diff(tc.want, report{got.Matched, got.Unchanged, got.Uncertain, kinds}); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, got.Problems)
			}
			if got.OK() != (len(tc.want.Problems) == 0) {
				t.Errorf("OK: got %t", got.OK())
			}
		})
	}
}

// TestJoin_NamesTheReleaseWorkOfAWrite: an auditor looks at a work whose record is missing.
func TestJoin_NamesTheReleaseWorkOfAWrite(t *testing.T) {
	written := event("a", func(_, request, answer object) {
		metadata(request)["labels"] = object{evidence.LabelReleaseWork: "w-uid"}
		metadata(answer)["resourceVersion"] = "1002"
	})
	report := evidence.Join(nil, readAudit(t, ours, lines(t, written)), evidence.JoinOptions{})
	if len(report.Problems) != 1 || report.Problems[0].Kind != evidence.ProblemWriteWithoutEvidence || !strings.Contains(report.Problems[0].Text, "ReleaseWork with uid w-uid") {
		t.Errorf("got %v", report.Problems)
	}
}

func TestJoin_TellsOfADamagedLog(t *testing.T) {
	report := evidence.Join(nil, readAudit(t, ours, []byte("x\n")), evidence.JoinOptions{})
	if len(report.Problems) != 1 || report.Problems[0].Kind != evidence.ProblemAuditDamaged {
		t.Errorf("got %v", report.Problems)
	}
}

// TestJoin_JudgesWithinBounds: what the log cannot know is left out, and counted.
func TestJoin_JudgesWithinBounds(t *testing.T) {
	log := readAudit(t, ours, lines(t, event("a", nil)))
	record := step(0)
	record.Result.ResourceVersion = "7"
	for name, tc := range map[string]struct {
		options           evidence.JoinOptions
		problems, outside int
	}{
		"no bounds": {evidence.JoinOptions{}, 2, 0},
		"after":     {evidence.JoinOptions{Since: noon.Add(time.Minute)}, 0, 2},
		"before":    {evidence.JoinOptions{Until: noon.Add(-time.Minute)}, 0, 2},
		"around":    {evidence.JoinOptions{Since: noon.Add(-time.Minute), Until: noon.Add(time.Minute)}, 2, 0},
	} {
		got := evidence.Join([]evidence.Record{record}, log, tc.options)
		if len(got.Problems) != tc.problems || got.Outside != tc.outside {
			t.Errorf("%s: got %d problems, %d outside", name, len(got.Problems), got.Outside)
		}
	}
}
