// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	deployments   = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	deploymentsGR = schema.GroupResource{Group: "apps", Resource: "deployments"}
)

// fakeTargets are the guarded objects of an API server, which answers writes by
// their uid and resourceVersion.
type fakeTargets struct {
	w       *world
	objects map[string]map[string]any
	// ill says that no Deployment is ready.
	ill bool
	// still says that a write moves no version, as one that changes nothing does.
	still bool
	// fails is asked before a call, "get", "put", "post" or "dry run"; lost after a
	// call that was stored. An error is the answer.
	fails, lost func(call string) error
	// posts is asked before a creation is tried or stored; an error is the answer.
	posts func(call string, made map[string]any) error
	// stored are the writes that were stored.
	stored []string
	uids   int
}

func newTargets(w *world) *fakeTargets {
	t := &fakeTargets{w: w, objects: map[string]map[string]any{}}
	t.objects["web"] = t.parse(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"uid-web","resourceVersion":"41","generation":7},` +
		`"spec":{"replicas":7,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"evil:1","name":"app"}]}}}}`)
	return t
}

func (t *fakeTargets) parse(raw string) map[string]any {
	t.w.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(raw), &object); err != nil {
		t.w.Fatal(err)
	}
	return object
}

// body is an object as it is read: its controller has seen its spec.
func (t *fakeTargets) body(name string) string {
	t.w.Helper()
	object := t.objects[name]
	metadata, _ := object["metadata"].(map[string]any)
	spec, _ := object["spec"].(map[string]any)
	replicas := spec["replicas"]
	if t.ill {
		replicas = 0
	}
	if object["kind"] != "Deployment" { // its controller says nothing
		delete(object, "status")
		return t.encode(object)
	}
	object["status"] = map[string]any{
		"observedGeneration": metadata["generation"], "replicas": spec["replicas"], "updatedReplicas": spec["replicas"],
		"readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}
	return t.encode(object)
}

func (t *fakeTargets) encode(object any) string {
	t.w.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.w.Fatal(err)
	}
	return string(raw)
}

func (t *fakeTargets) metadata(name string) map[string]any {
	metadata, _ := t.objects[name]["metadata"].(map[string]any)
	return metadata
}

// moves the resourceVersion of an object, as each write does.
func (t *fakeTargets) moves(name string) {
	metadata := t.metadata(name)
	version, err := strconv.Atoi(fmt.Sprint(metadata["resourceVersion"]))
	if err != nil {
		t.w.Fatal(err)
	}
	metadata["resourceVersion"] = strconv.Itoa(version + 1)
}

func ask(fails func(string) error, call string) error {
	if fails == nil {
		return nil
	}
	return fails(call)
}

// Get implements Targets.
func (t *fakeTargets) Get(_ context.Context, ref Reference) ([]byte, error) {
	if err := ask(t.fails, "get"); err != nil {
		return nil, err
	}
	if t.objects[ref.Name] == nil {
		return nil, apierrors.NewNotFound(deploymentsGR, ref.Name)
	}
	return []byte(t.body(ref.Name)), nil
}

// Patch implements Targets. The one patch that is sent replaces managedFields.
func (t *fakeTargets) Patch(_ context.Context, ref Reference, patch []byte) ([]byte, error) {
	if err := ask(t.fails, "patch"); err != nil {
		return nil, err
	}
	now, sent := t.metadata(ref.Name), t.parse(string(patch))
	bound, _ := sent["metadata"].(map[string]any)
	if bound["uid"] != now["uid"] || bound["resourceVersion"] != now["resourceVersion"] {
		return nil, apierrors.NewConflict(deploymentsGR, ref.Name, errNetwork)
	}
	now["managedFields"] = bound["managedFields"]
	t.moves(ref.Name)
	t.stored = append(t.stored, "fields of "+ref.Name)
	return []byte(t.body(ref.Name)), nil
}

// Put implements Targets.
func (t *fakeTargets) Put(_ context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error) {
	call := "put"
	if dryRun {
		call = "dry run"
	}
	if err := ask(t.fails, call); err != nil {
		return nil, err
	}
	if t.objects[ref.Name] == nil {
		return nil, apierrors.NewNotFound(deploymentsGR, ref.Name)
	}
	now, sent := t.metadata(ref.Name), t.parse(string(body))
	bound, _ := sent["metadata"].(map[string]any)
	if bound["uid"] != now["uid"] || bound["resourceVersion"] != now["resourceVersion"] {
		return nil, apierrors.NewConflict(deploymentsGR, ref.Name, errNetwork)
	}
	if dryRun {
		return body, nil
	}
	before := t.encode(t.objects[ref.Name]["spec"])
	t.objects[ref.Name] = sent
	if !t.still {
		t.moves(ref.Name)
	}
	what := "fence " + ref.Name
	if before != t.encode(sent["spec"]) {
		bound["generation"] = 8
		what = "put " + ref.Name
	}
	t.stored = append(t.stored, what)
	if err := ask(t.lost, call); err != nil {
		return nil, err
	}
	return []byte(t.body(ref.Name)), nil
}

// Post implements Targets.
func (t *fakeTargets) Post(_ context.Context, ref Reference, body []byte, dryRun bool) ([]byte, error) {
	call := "post"
	if dryRun {
		call = "dry run"
	}
	if err := ask(t.fails, call); err != nil {
		return nil, err
	}
	if t.objects[ref.Name] != nil {
		return nil, apierrors.NewAlreadyExists(deploymentsGR, ref.Name)
	}
	made := t.parse(string(body))
	if t.posts != nil {
		if err := t.posts(call, made); err != nil {
			return nil, err
		}
	}
	metadata, _ := made["metadata"].(map[string]any)
	t.uids++
	metadata["uid"], metadata["generation"] = fmt.Sprint("made-", t.uids), 1
	if !dryRun {
		metadata["resourceVersion"] = "1"
		t.objects[ref.Name] = made
		t.stored = append(t.stored, "post "+ref.Name)
		if err := ask(t.lost, call); err != nil {
			return nil, err
		}
	}
	return []byte(t.encode(made)), nil
}
