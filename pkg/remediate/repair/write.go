// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// AnnotationFenced holds the resourceVersion that a fence made unreachable. The
// label of a fence is the same for every fence of a step, and a write that
// changes nothing moves no resourceVersion; this always differs.
const AnnotationFenced = "plumbline.dev/fenced"

// AnnotationNotAfter holds the last second in which the API server admits a creation, as
// RFC 3339. A policy of the chart holds the executor to that time; afterwards the
// annotation says nothing.
const AnnotationNotAfter = "plumbline.dev/not-after"

// annotationRestarted is the mark of `kubectl rollout restart`, which is never
// drift.
const annotationRestarted = "kubectl.kubernetes.io/restartedAt"

var (
	// ErrNotRestartable says that the kind has no pods of its own that a restart would make anew.
	ErrNotRestartable = errors.New("only Deployments, StatefulSets and DaemonSets can be restarted")
	// ErrNoWrite says that the action does not write to its target.
	ErrNoWrite = errors.New("the action does not write")
)

// Marks say what a write belongs to.
type Marks struct {
	PlanUID string
	Step    int32
	// Token of a restart; see protocol.Token.
	Token string
}

// Write is object with what the step changes, as the body of a PUT. It fails with
// [ErrNotRestartable], [ErrNoWrite], or because a body cannot be read.
func Write(object []byte, target *v1alpha1.PlanTarget, s *Standard, m Marks) ([]byte, error) {
	changes, err := changes(object, target, s, m)
	if err != nil {
		return nil, err
	}
	// What has no place is left out; the dry run then shows that it does not lead
	// to the desired state.
	out, _, err := diff.Apply(object, s.GVK, changes)
	if err != nil {
		return nil, fmt.Errorf("changing the object: %w", err)
	}
	return mark(out, s.GVK, labels(m))
}

func changes(object []byte, target *v1alpha1.PlanTarget, s *Standard, m Marks) ([]diff.Change, error) {
	switch target.Action {
	case v1alpha1.ActionReconcile, v1alpha1.ActionRollback:
		return specguard.PutBack(object, s.Desired, s.GVK, s.Rules, s.Masks)
	case v1alpha1.ActionScale:
		all, err := specguard.PutBack(object, s.Desired, s.GVK, s.Rules, nil)
		return slices.DeleteFunc(all, func(c diff.Change) bool { return c.Path.String() != "/spec/replicas" }), err
	case v1alpha1.ActionRestart:
		return restart(object, s.GVK, m.Token)
	case v1alpha1.ActionNotifyOnly, v1alpha1.ActionQuarantine:
	}
	return nil, fmt.Errorf("%s: %w", target.Action, ErrNoWrite)
}

func restart(object []byte, gvk canon.GVK, token string) ([]diff.Change, error) {
	if gvk.Group != "apps" || !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, gvk.Kind) {
		return nil, ErrNotRestartable
	}
	return members(object, gvk, []string{"spec", "template", "metadata", "annotations"}, map[string]string{annotationRestarted: token})
}

// RestartedFor is the token of the step that restarted an object last, or
// whatever else stands in its place.
func RestartedFor(object []byte, gvk canon.GVK) string {
	document, err := canon.Parse(object, gvk)
	if err != nil {
		return ""
	}
	defer document.Release()
	at := document.Root().Get("spec").Get("template").Get("metadata").Get("annotations").Get(annotationRestarted)
	if at.Kind() != canon.String {
		return ""
	}
	return string(at.Bytes())
}

// Fence is object with a mark that moves its resourceVersion and changes nothing
// that anybody runs by.
func Fence(object []byte, gvk canon.GVK, m Marks, version string) ([]byte, error) {
	out, err := mark(object, gvk, map[string]string{evidence.LabelFence: m.PlanUID + "." + strconv.Itoa(int(m.Step))})
	if err != nil {
		return nil, err
	}
	return markIn(out, gvk, []string{"metadata", "annotations"}, map[string]string{AnnotationFenced: version})
}

// Creation is the body of a POST that makes a target again, and that the API server
// admits until a time.
func Creation(namespace string, target *v1alpha1.PlanTarget, s *Standard, m Marks, notAfter time.Time) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(s.Desired, &object); err != nil {
		return nil, fmt.Errorf("reading the authorized body: %w", err)
	}
	all, annotations := map[string]string{}, map[string]string{}
	if last := s.Metadata; last != nil {
		maps.Copy(all, last.Labels)
		delete(all, evidence.LabelFence) // of a step that is over
		maps.Copy(annotations, last.Annotations)
	}
	maps.Copy(all, labels(m))
	annotations[AnnotationNotAfter] = notAfter.UTC().Format(time.RFC3339)
	metadata := map[string]any{"namespace": namespace, "name": target.Name, "labels": all, "annotations": annotations}
	if owners := references(s.Owners); len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}
	for member, value := range map[string]any{
		"apiVersion": target.APIVersion, "kind": target.Kind,
		"metadata": metadata,
	} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", member, err)
		}
		object[member] = raw
	}
	return json.Marshal(object)
}

func labels(m Marks) map[string]string {
	return map[string]string{evidence.LabelPlan: m.PlanUID, evidence.LabelStep: strconv.Itoa(int(m.Step))}
}

func mark(object []byte, gvk canon.GVK, labels map[string]string) ([]byte, error) {
	return markIn(object, gvk, []string{"metadata", "labels"}, labels)
}

func markIn(object []byte, gvk canon.GVK, place []string, values map[string]string) ([]byte, error) {
	changes, err := members(object, gvk, place, values)
	if err != nil {
		return nil, err
	}
	out, skipped, err := diff.Apply(object, gvk, changes)
	if err != nil || len(skipped) > 0 {
		return nil, fmt.Errorf("marking the object at %v: %w", place, errors.Join(err, errNoPlace(skipped)))
	}
	return out, nil
}

func errNoPlace(skipped []diff.Change) error {
	if len(skipped) == 0 {
		return nil
	}
	return fmt.Errorf("%s has no place", skipped[0].Path)
}

// members sets members of a map that may not be there yet, nor the maps around it.
func members(object []byte, gvk canon.GVK, place []string, values map[string]string) ([]diff.Change, error) {
	document, err := canon.Parse(object, gvk)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	defer document.Release()
	at, there := document.Root(), 0
	for there < len(place) && at.Kind() == canon.Map {
		next := at.Get(place[there])
		if next.Kind() != canon.Map {
			break
		}
		at, there = next, there+1
	}
	if there < len(place) {
		var value any = values
		for i := len(place) - 1; i > there; i-- {
			value = map[string]any{place[i]: value}
		}
		return one(place[:there+1], value)
	}
	var changes []diff.Change
	for key, value := range values {
		c, err := one(append(slices.Clone(place), key), value)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c...)
	}
	return changes, nil
}

func one(place []string, value any) ([]diff.Change, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a mark: %w", err)
	}
	path := canon.Path{}
	for _, name := range place {
		next, ok := path.Child(canon.Field(name))
		if !ok {
			return nil, fmt.Errorf("writing a mark: %v is too deep", place)
		}
		path = next
	}
	return []diff.Change{{Path: path, Op: diff.Added, After: raw}}, nil
}
