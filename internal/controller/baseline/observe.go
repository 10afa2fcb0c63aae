// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/kube"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// observed is one observation, and how many transitions it settles: those that
// were judged before come along with the first that was not.
type observed struct {
	observation specguard.Observation
	// object is the version that is looked at, nil when it is absent.
	object  *kube.Object
	settles int
}

// observations turns what is known of an object into observations, oldest first.
// There is always at least one: with nothing pending it is a look at what is
// there now.
func observations(view kube.View, last v1alpha1.ObservedState, terminating bool) ([]observed, error) {
	done := judged(view.Pending, last)
	pending := view.Pending[done:]
	if len(pending) == 0 {
		o, err := look(view.Current, terminating)
		o.settles = done
		return []observed{o}, err
	}
	var all []observed
	if gap := missed(pending[0], last); gap != nil {
		// The first transition starts from a version that was never looked at,
		// such as the one of the first list.
		o, err := look(gap, terminating)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	for _, t := range pending {
		o, err := transition(t, terminating)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	all[0].settles += done
	return all, nil
}

// judged counts the transitions, oldest first, that lead to no newer version than
// the one last judged. Another assessor was faster, as after a pause longer than
// the lease: what it judged, perhaps with an accept since, must not be judged
// again on top of that.
func judged(pending []kube.Transition, last v1alpha1.ObservedState) int {
	for i, t := range pending {
		version := ""
		switch {
		case t.Next != nil:
			version = t.Next.ResourceVersion
		case t.Contiguous && t.Prev != nil: // the deletion's own version
			version = t.Prev.ResourceVersion
		}
		if version == "" || last.ResourceVersion == "" || version != last.ResourceVersion && !older(version, last.ResourceVersion) {
			return i
		}
	}
	return len(pending)
}

// older says whether one version of a kind's objects was written before another.
// They are comparable as integers (KEP-5504); of what is none, nothing is said.
func older(a, b string) bool {
	va, errA := strconv.ParseUint(a, 10, 64)
	vb, errB := strconv.ParseUint(b, 10, 64)
	return errA == nil && errB == nil && va < vb
}

// missed returns the version before a transition if it is not the one last
// looked at.
func missed(t kube.Transition, last v1alpha1.ObservedState) *kube.Object {
	if !t.Contiguous || t.Prev == nil {
		return nil
	}
	if string(t.Prev.UID) == last.UID && string(t.Prev.FullHash) == last.FullHash {
		return nil
	}
	return t.Prev
}

// look observes a version without knowing the one before.
func look(object *kube.Object, terminating bool) (observed, error) {
	if object == nil {
		return observed{observation: specguard.Absent{NamespaceTerminating: terminating}}, nil
	}
	if object.Unreadable != nil {
		return observed{observation: specguard.Unknown{Why: object.Unreadable.Error()}, object: object}, nil //nolint:nilerr // unknown is a result
	}
	present, err := presentOf(object)
	return observed{observation: present, object: object}, err
}

// transition observes one step of the watch.
func transition(t kube.Transition, terminating bool) (observed, error) {
	if t.Next == nil {
		return disappearance(t, terminating)
	}
	o, err := look(t.Next, terminating)
	o.settles = 1
	present, ok := o.observation.(specguard.Present)
	if err != nil || !ok {
		return o, err
	}
	present.SeenAt = t.SeenAt
	if t.Contiguous {
		present.Created = t.Prev == nil
		present.Prev, err = versionOf(t.Prev)
	}
	o.observation = present
	return o, err
}

func disappearance(t kube.Transition, terminating bool) (observed, error) {
	absent := specguard.Absent{NamespaceTerminating: terminating, SeenAt: t.SeenAt}
	var err error
	if t.Contiguous {
		absent.Last, err = versionOf(t.Prev)
		absent.Deleting = t.Prev != nil && t.Prev.DeletionTimestamp != nil
	}
	return observed{observation: absent, settles: 1}, err
}

func presentOf(o *kube.Object) (specguard.Present, error) {
	version, err := versionOf(o)
	if err != nil {
		return specguard.Present{}, err
	}
	return specguard.Present{
		Version:   *version,
		UID:       string(o.UID),
		CreatedAt: o.CreationTimestamp.Time,
		Deleting:  o.DeletionTimestamp != nil,
		Metadata:  metadataOf(o),
	}, nil
}

// Bounds of the metadata that a Baseline keeps of an object. Of more labels, none are kept: a
// part of them could be worse. A longer annotation names no package.
const (
	maxLabels          = 256
	maxLabelBytes      = 16 << 10
	maxAnnotationBytes = 1 << 10
)

func metadataOf(o *kube.Object) *v1alpha1.ObservedMetadata {
	var m v1alpha1.ObservedMetadata
	size := 0
	for name, value := range o.Labels {
		size += len(name) + len(value)
	}
	if len(o.Labels) <= maxLabels && size <= maxLabelBytes {
		m.Labels = o.Labels
	}
	for _, name := range kube.PackageAnnotations {
		if value, ok := o.Annotations[name]; ok && len(value) <= maxAnnotationBytes {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[name] = value
		}
	}
	if len(m.Labels) == 0 && len(m.Annotations) == 0 {
		return nil
	}
	return &m
}

// versionOf unpacks a version; nil for one that is absent or has no readable body.
func versionOf(o *kube.Object) (*specguard.Version, error) {
	if o == nil || o.Unreadable != nil {
		return nil, nil //nolint:nilerr // a version that cannot be read is one we do not have
	}
	body, err := o.Body()
	if err != nil {
		return nil, fmt.Errorf("unpacking version %s of %s: %w", o.ResourceVersion, o.Name, err)
	}
	managers, err := managersOf(o)
	if err != nil {
		return nil, err
	}
	return &specguard.Version{
		Body:            body,
		ResourceVersion: o.ResourceVersion,
		Generation:      o.Generation,
		Writer:          o.Writer(),
		WriterGroups:    specguard.ParseWriterGroups(o.Annotations[v1alpha1.AnnotationWriterGroups]),
		Managers:        managers,

		BreakGlassReason: o.Annotations[v1alpha1.AnnotationBreakGlassReason],
		Labels:           o.Labels,
	}, nil
}

func managersOf(o *kube.Object) ([]metav1.ManagedFieldsEntry, error) {
	raw, err := o.ManagedFieldsJSON()
	if err != nil || raw == nil {
		return nil, err
	}
	var managers []metav1.ManagedFieldsEntry
	if err := json.Unmarshal(raw, &managers); err != nil {
		return nil, fmt.Errorf("decoding the managed fields of %s: %w", o.Name, err)
	}
	return managers, nil
}
