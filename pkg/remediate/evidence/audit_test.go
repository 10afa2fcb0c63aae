// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
)

const ourUser = "system:serviceaccount:plumbline-system:plumbline-executor"

var ours = evidence.AuditFilter{Users: []string{ourUser}}

type object = map[string]any

// event of a patch of the target by a step, as the API server logs it at level
// RequestResponse.
func event(id string, change func(e, request, answer object)) object {
	request := object{"metadata": object{
		"uid": targetUID, "resourceVersion": "1000",
		"labels": object{evidence.LabelPlan: planUID, evidence.LabelStep: "0"},
	}, "spec": object{"paused": false}}
	answer := object{"kind": "Deployment", "apiVersion": "apps/v1", "metadata": object{
		"name": "web", "namespace": "shop", "uid": targetUID, "resourceVersion": "1001",
		"labels": object{"app": "web", evidence.LabelPlan: planUID, evidence.LabelStep: "0"},
	}}
	e := object{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": id,
		"stage": "ResponseComplete", "verb": "patch",
		"requestURI": "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=plumbline",
		"user":       object{"username": ourUser, "groups": []string{"system:authenticated"}},
		"sourceIPs":  []string{"10.0.0.1"},
		"objectRef": object{
			"resource": "deployments", "namespace": "shop", "name": "web", "apiGroup": "apps", "apiVersion": "v1",
		},
		"responseStatus":           object{"metadata": object{}, "code": 200},
		"requestReceivedTimestamp": "2026-11-21T12:00:00.500000Z",
		"stageTimestamp":           "2026-11-21T12:00:00.510000Z",
		"annotations":              object{"authorization.k8s.io/decision": "allow"},
	}
	e["requestObject"], e["responseObject"] = request, answer
	if change != nil {
		change(e, request, answer)
	}
	return e
}

func lines(t testing.TB, events ...object) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, e := range events {
		if err := json.NewEncoder(&b).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func readAudit(t testing.TB, f evidence.AuditFilter, files ...[]byte) *evidence.AuditLog {
	t.Helper()
	log := &evidence.AuditLog{}
	for _, data := range files {
		if err := evidence.ReadAudit(bytes.NewReader(data), f, log); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

func metadata(o object) object { return o["metadata"].(object) }

func TestReadAudit_ReadsAWrite(t *testing.T) {
	log := readAudit(t, ours, lines(t, event("a", nil)))
	want := []evidence.Write{{
		AuditID: "a", At: noon.Add(500 * time.Millisecond), User: ourUser, Verb: "patch", Group: "apps",
		Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web", UID: targetUID,
		Certain: true, Bodies: true, Before: "1000", After: "1001", Plan: planUID, Step: "0",
	}}
	if diff := cmp.Diff(want, log.Writes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReadAudit_WhatCounts: each case changes one event; the text is what the
// write is then, or "-" if it is none.
func TestReadAudit_WhatCounts(t *testing.T) {
	set := func(key string, value any) func(e, _, _ object) {
		return func(e, _, _ object) { e[key] = value }
	}
	code := func(n int) func(e, _, _ object) { return set("responseStatus", object{"code": n}) }
	reference := func(group, resource string) func(e, _, _ object) {
		return func(e, _, _ object) {
			e["objectRef"].(object)["apiGroup"], e["objectRef"].(object)["resource"] = group, resource
		}
	}
	cases := map[string]struct {
		change func(e, request, answer object)
		want   string
	}{
		"a patch":       {nil, "certain plan 0"},
		"created":       {code(201), "certain plan 0"},
		"somebody else": {set("user", object{"username": "alice"}), "-"},
		"somebody who acts as we": {func(e, _, _ object) {
			e["user"] = object{"username": "eve"}
			e["impersonatedUser"] = object{"username": ourUser}
		}, "certain plan 0"},
		"we, acting as somebody else":     {set("impersonatedUser", object{"username": "alice"}), "-"},
		"a read":                          {set("verb", "get"), "-"},
		"a watch":                         {set("verb", "watch"), "-"},
		"a deletion":                      {set("verb", "delete"), "certain plan 0"},
		"not yet answered":                {set("stage", "RequestReceived"), "-"},
		"a panic, after which who knows":  {func(e, _, _ object) { e["stage"] = "Panic"; e["responseStatus"] = object{"code": 500} }, "uncertain plan 0"},
		"a conflict":                      {code(409), "-"},
		"forbidden":                       {code(403), "-"},
		"invalid":                         {code(422), "-"},
		"timed out, perhaps stored":       {code(504), "uncertain plan 0"},
		"no status":                       {set("responseStatus", nil), "uncertain plan 0"},
		"a dry run":                       {set("requestURI", "/apis/apps/v1/namespaces/shop/deployments/web?dryRun=All&fieldManager=x"), "-"},
		"a name that speaks of a dry run": {set("requestURI", "/apis/apps/v1/namespaces/shop/deployments/dryRun=All"), "certain plan 0"},
		"a deletion on trial": {func(e, _, _ object) {
			e["verb"] = "delete"
			e["requestObject"] = object{"kind": "DeleteOptions", "dryRun": []string{"All"}}
		}, "-"},
		"one of our own kinds":     {reference("plumbline.dev", "remediationplans"), "-"},
		"a lease":                  {reference("coordination.k8s.io", "leases"), "-"},
		"an event":                 {reference("", "events"), "-"},
		"a Secret, never a target": {reference("", "secrets"), "certain plan 0"},
		"no object":                {set("objectRef", nil), "-"},
		"an apply in YAML":         {set("requestObject", "spec:\n  paused: false\n"), "certain plan 0"},
		"no request in the log":    {set("requestObject", nil), "certain plan 0"},
		"no answer in the log":     {set("responseObject", nil), "certain plan 0"},
		"neither":                  {func(e, _, _ object) { delete(e, "requestObject"); delete(e, "responseObject") }, "certain bodiless"},
		"unmarked, on an object that a step marked": {func(_, request, _ object) { delete(metadata(request), "labels") }, "certain"},
		"a fence": {func(_, request, _ object) {
			metadata(request)["labels"] = object{evidence.LabelFence: planUID + ".4"}
		}, "certain plan 4 fence"},
		"a step on an object that was fenced": {func(_, request, _ object) {
			metadata(request)["labels"].(object)[evidence.LabelFence] = planUID + ".4"
		}, "certain plan 0"},
		"a JSON patch": {set("requestObject", []object{
			{"op": "test", "path": "/metadata/resourceVersion", "value": "1000"},
			{"op": "add", "path": "/metadata/labels/plumbline.dev~1plan", "value": planUID},
			{"op": "add", "path": "/metadata/labels/plumbline.dev~1step", "value": "7"},
		}), "certain plan 7"},
		"a JSON patch of all labels": {set("requestObject", []object{
			{"op": "replace", "path": "/metadata/labels", "value": nil},
			{"op": "add", "path": "/metadata/labels", "value": object{evidence.LabelPlan: planUID, evidence.LabelStep: "8"}},
		}), "certain plan 8"},
		"a JSON patch that only tests our marks": {set("requestObject", []object{
			{"op": "test", "path": "/metadata/labels/plumbline.dev~1plan", "value": planUID},
		}), "certain"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := readAudit(t, ours, lines(t, event("a", tc.change)))
			got := "-"
			if len(log.Writes) > 0 {
				got = writeText(log.Writes[0])
			}
			if got != tc.want || log.Damaged != 0 || log.Events != 1 {
				t.Errorf("got %q, want %q; %d events, %d damaged", got, tc.want, log.Events, log.Damaged)
			}
		})
	}
}

func writeText(w evidence.Write) string {
	parts := []string{"uncertain"}
	if w.Certain {
		parts[0] = "certain"
	}
	if !w.Bodies {
		parts = append(parts, "bodiless")
	}
	if w.Plan != "" {
		parts = append(parts, "plan", w.Step)
	}
	if w.Fence {
		parts = append(parts, "fence")
	}
	return strings.Join(parts, " ")
}

func TestReadAudit_Resources(t *testing.T) {
	for resource, want := range map[string]int{"deployments.apps": 1, "deployments": 0, "statefulsets.apps": 0} {
		log := readAudit(t, evidence.AuditFilter{Users: ours.Users, Resources: []string{resource}}, lines(t, event("a", nil)))
		if len(log.Writes) != want {
			t.Errorf("%s: got %d writes, want %d", resource, len(log.Writes), want)
		}
	}
}

func TestReadAudit_Files(t *testing.T) {
	first, second := lines(t, event("a", nil), event("b", nil)), lines(t, event("b", nil), event("c", nil))
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(first); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		files                   [][]byte
		writes, events, damaged int
	}{
		"one":                            {[][]byte{first}, 2, 2, 0},
		"two that overlap":               {[][]byte{second, first}, 3, 4, 0},
		"one compressed":                 {[][]byte{packed.Bytes(), second}, 3, 4, 0},
		"an empty one":                   {[][]byte{nil}, 0, 0, 0},
		"one that ends without newline":  {[][]byte{bytes.TrimSpace(first)}, 2, 2, 0},
		"one that is just being written": {[][]byte{first[:len(first)-20]}, 1, 1, 0},
		"a damaged line in the middle":   {[][]byte{bytes.Join([][]byte{first, []byte("{\"kind\":\n"), second}, nil)}, 3, 4, 1},
		"a line of something else":       {[][]byte{[]byte("{\"kind\":\"Pod\"}\n")}, 0, 0, 1},
		"a time that is none":            {[][]byte{bytes.Replace(first, []byte("2026-11-21T12"), []byte("2026-99-21T12"), 1)}, 1, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log := readAudit(t, ours, tc.files...)
			if len(log.Writes) != tc.writes || log.Events != tc.events || log.Damaged != tc.damaged {
				t.Errorf("got %d writes, %d events, %d damaged", len(log.Writes), log.Events, log.Damaged)
			}
		})
	}
	broken := packed.Bytes()[:packed.Len()-8]
	if err := evidence.ReadAudit(bytes.NewReader(broken), ours, &evidence.AuditLog{}); err == nil {
		t.Error("a compressed file without its end was read without an error")
	}
}

func TestReadAudit_BoundsALine(t *testing.T) {
	endless := strings.NewReader(strings.Repeat("x", 33<<20))
	if err := evidence.ReadAudit(endless, ours, &evidence.AuditLog{}); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v", err)
	}
}

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
	requestOnly := func(id string) object { return event(id, func(e, _, _ object) { delete(e, "responseObject") }) }
	bodiless := event("m", func(e, _, _ object) { delete(e, "requestObject"); delete(e, "responseObject"); e["level"] = "Metadata" })
	failedWith := func(code int) object {
		return event("t", func(e, _, _ object) { e["responseStatus"] = object{"code": code}; delete(e, "responseObject") })
	}
	deleted := event("d", func(e, request, _ object) {
		e["verb"], e["responseObject"] = "delete", object{"kind": "Status", "status": "Success"}
		delete(metadata(request), "labels")
	})
	gone := left(0, "1005")
	gone.Subject.Hash, gone.Result.Hash = "absent", "absent"
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
		"nothing at all":                       {nil, nil, report{}},
		"a write and its record":               {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1}},
		"records that wrote nothing":           {[]evidence.Record{skipped, decision(evidence.KindPlanCreated, 0)}, nil, report{}},
		"a write without evidence":             {nil, []object{write("a", "1001", planUID, "0")}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"evidence without a write":             {[]evidence.Record{left(0, "1001")}, nil, report{Problems: problems(evidence.ProblemEvidenceWithoutWrite)}},
		"a record of another version":          {[]evidence.Record{left(0, "1009")}, []object{write("a", "1001", planUID, "0")}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence, evidence.ProblemEvidenceWithoutWrite)}},
		"a step that wrote twice":              {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), write("b", "1002", planUID, "0")}, report{Matched: 1, Problems: problems(evidence.ProblemSeveralWrites)}},
		"a step that wrote the same twice":     {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), write("b", "1001", planUID, "0")}, report{Matched: 1, Unchanged: 1}},
		"a write that changed nothing":         {nil, []object{event("a", func(_, request, _ object) { metadata(request)["resourceVersion"] = "1001" })}, report{Unchanged: 1}},
		"an unmarked write, known by version":  {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", "", "")}, report{Matched: 1}},
		"another object than the record's":     {[]evidence.Record{elsewhere}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1, Problems: problems(evidence.ProblemMismatch)}},
		"a recovered step, at a later version": {[]evidence.Record{recovered(0, "1044")}, []object{write("a", "1001", planUID, "0")}, report{Matched: 1}},
		"a recovered step that never wrote":    {[]evidence.Record{recovered(0, "1044")}, nil, report{Problems: problems(evidence.ProblemEvidenceWithoutWrite)}},
		"a timeout that was stored":            {[]evidence.Record{recovered(0, "1044")}, []object{failedWith(504)}, report{Matched: 1}},
		"a timeout that was not":               {nil, []object{failedWith(504)}, report{Uncertain: 1}},
		"a timeout, and the retry that wrote":  {[]evidence.Record{left(0, "1001")}, []object{failedWith(504), write("a", "1001", planUID, "0")}, report{Matched: 1, Uncertain: 1}},
		"a log at level Request":               {[]evidence.Record{left(0, "1001")}, []object{requestOnly("a")}, report{Matched: 1}},
		"two writes at level Request":          {[]evidence.Record{left(0, "1001")}, []object{requestOnly("a"), requestOnly("b")}, report{Matched: 1, Problems: problems(evidence.ProblemSeveralWrites)}},
		"a log at level Metadata":              {[]evidence.Record{left(0, "1001")}, []object{bodiless}, report{Problems: problems(evidence.ProblemAuditLevel)}},
		"a fence and its record":               {[]evidence.Record{fence("1002")}, []object{fenced}, report{Matched: 1}},
		"a fence that conflicts with its step": {[]evidence.Record{fence("1002"), recovered(0, "1002")}, []object{write("a", "1001", planUID, "0"), fenced}, report{Matched: 2}},
		"a fence without a record":             {nil, []object{fenced}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"a deletion and its record":            {[]evidence.Record{gone}, []object{deleted}, report{Matched: 1}},
		"a deletion that no record tells of":   {[]evidence.Record{left(0, "1001")}, []object{write("a", "1001", planUID, "0"), deleted}, report{Matched: 1, Problems: problems(evidence.ProblemWriteWithoutEvidence)}},
		"a deletion of something else": {[]evidence.Record{gone}, []object{event("d", func(e, request, _ object) {
			e["verb"], e["responseObject"] = "delete", object{"kind": "Status"}
			e["objectRef"].(object)["name"] = "cart"
			delete(metadata(request), "labels")
		})}, report{Problems: problems(evidence.ProblemWriteWithoutEvidence, evidence.ProblemEvidenceWithoutWrite)}},
		"one version told by two answers, of which one failed": {[]evidence.Record{left(0, "1001")}, []object{
			event("p", func(e, _, _ object) { e["responseStatus"] = object{"code": 500} }), write("a", "1001", planUID, "0"),
		}, report{Matched: 1, Uncertain: 1}},
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

func FuzzReadAudit(f *testing.F) {
	f.Add(lines(f, event("a", nil), event("b", nil)))
	f.Add([]byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","user":{"username":"` + ourUser + `"},"objectRef":{"resource":"x"},"responseStatus":{"code":200},"requestObject":[{"op":"add","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels/a","value":"b"}]}`))
	f.Add([]byte{0x1f, 0x8b, 8, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		log := &evidence.AuditLog{}
		if err := evidence.ReadAudit(bytes.NewReader(data), ours, log); err != nil {
			return
		}
		report := evidence.Join([]evidence.Record{step(0)}, log, evidence.JoinOptions{})
		if certain := len(log.Writes); report.Matched+report.Unchanged+report.Uncertain > certain {
			t.Errorf("%d writes, and %s", certain, fmt.Sprintf("%+v", report))
		}
	})
}
