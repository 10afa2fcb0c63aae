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

	"github.com/plumbline-dev/plumbline/pkg/evidence"
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

// A write of a subresource answers with an object of the subresource's own kind.
func TestReadAudit_NamesTheSubresource(t *testing.T) {
	log := readAudit(t, ours, lines(t, event("a", func(e, _, answer object) {
		e["objectRef"].(object)["subresource"], answer["kind"] = "scale", "Scale"
	})))
	if len(log.Writes) != 1 || log.Writes[0].Resource != "deployments/scale" || log.Writes[0].Kind != "" {
		t.Errorf("got %+v", log.Writes)
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
	configMap := func(name string) func(e, _, _ object) {
		return func(e, _, _ object) {
			reference("", "configmaps")(e, nil, nil)
			e["objectRef"].(object)["name"] = name
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
		"our own public keys":      {configMap("plumbline-evidence"), "-"},
		"another ConfigMap":        {configMap("web"), "certain plan 0"},
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
		"a standby": {func(_, request, _ object) {
			metadata(request)["labels"] = object{evidence.LabelStandby: planUID + ".4.2"}
		}, "certain plan 4 standby"},
		"a step on an object that was fenced": {func(_, request, _ object) {
			metadata(request)["labels"].(object)[evidence.LabelFence] = planUID + ".4"
		}, "certain plan 0"},
		"a return of fields": {set("requestObject", object{
			"metadata": object{"uid": targetUID, "resourceVersion": "1000", "managedFields": []object{}},
		}), "-"},
		"a precondition that returns no fields": {set("requestObject", object{
			"metadata": object{"uid": targetUID, "resourceVersion": "1000"},
		}), "certain"},
		"a create with the body of a return of fields": {func(e, _, _ object) {
			e["verb"] = "create"
			e["requestObject"] = object{"metadata": object{"resourceVersion": "1000", "managedFields": []object{}}}
		}, "certain"},
		"a JSON patch of an operation that is none, whose answer tells": {set("requestObject", []object{{"op": 7}}), "certain plan 0"},
		"a return of fields to whatever version":                        {set("requestObject", object{"metadata": object{"managedFields": []object{}}}), "certain"},
		"a return of fields that changes a label": {set("requestObject", object{
			"metadata": object{"resourceVersion": "1000", "managedFields": []object{}, "labels": object{"app": "x"}},
		}), "certain"},
		"a return of fields that changes the spec": {set("requestObject", object{
			"metadata": object{"resourceVersion": "1000", "managedFields": []object{}}, "spec": object{},
		}), "certain"},
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
	if w.Standby {
		parts = append(parts, "standby")
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
		"an event of the core group":     {[][]byte{[]byte("{\"kind\":\"Event\",\"apiVersion\":\"v1\"}\n")}, 0, 0, 1},
		"a list of events":               {[][]byte{[]byte("{\"kind\":\"EventList\",\"apiVersion\":\"audit.k8s.io/v1\"}\n")}, 0, 0, 1},
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
