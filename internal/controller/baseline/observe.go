// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"encoding/json"
	"errors"
	"fmt"

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
	// before is the version right before, where its content is not kept.
	before *kube.Object
	// dropped counts the versions before that are not judged, because their content is
	// not kept.
	dropped int
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
	dropped, settles := 0, done
	if gap := missed(pending[0], last); gap != nil && gap.Partial() {
		dropped++
	} else if gap != nil {
		// The first transition starts from a version that was never looked at,
		// such as the one of the first list.
		o, err := look(gap, terminating)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	for i, t := range pending {
		if t.Next != nil && t.Next.Partial() && i < len(pending)-1 {
			dropped, settles = dropped+1, settles+1
			continue
		}
		o, err := transition(t, terminating)
		if err != nil {
			return nil, err
		}
		o.settles += settles
		o.noteDropped(dropped)
		dropped, settles = 0, 0
		all = append(all, o)
	}
	return all, nil
}

// noteDropped notes the versions before, of which no content was kept.
func (o *observed) noteDropped(n int) {
	o.dropped = n
	if present, ok := o.observation.(specguard.Present); ok && n > 0 {
		present.EarlierDropped = true
		o.observation = present
	}
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
		if version == "" || last.ResourceVersion == "" || version != last.ResourceVersion && !kube.IsOlder(version, last.ResourceVersion) {
			return i
		}
	}
	return len(pending)
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
		if t.Prev != nil && t.Prev.Partial() {
			o.before = t.Prev
		}
	}
	o.observation = present
	return o, err
}

func disappearance(t kube.Transition, terminating bool) (observed, error) {
	absent := specguard.Absent{NamespaceTerminating: terminating, SeenAt: t.SeenAt}
	var err error
	if t.Contiguous {
		absent.Last, err = lastVersion(t.Prev)
		absent.Deleting = t.Prev != nil && t.Prev.DeletionTimestamp != nil
	}
	return observed{observation: absent, settles: 1}, err
}

func presentOf(o *kube.Object) (specguard.Present, error) {
	version, err := versionOf(o)
	if err != nil {
		return specguard.Present{}, err
	}
	if version == nil {
		return specguard.Present{}, fmt.Errorf("unpacking version %s of %s: %w", o.ResourceVersion, o.Name, kube.ErrNotKept)
	}
	return specguard.Present{
		Version:   *version,
		UID:       string(o.UID),
		CreatedAt: o.CreationTimestamp.Time,
		Deleting:  o.DeletionTimestamp != nil,
		Metadata:  metadataOf(o),
	}, nil
}

func metadataOf(o *kube.Object) *v1alpha1.ObservedMetadata {
	var m v1alpha1.ObservedMetadata
	// Of too many labels, none are kept: a part of them could be worse.
	if kube.FitsLabels(o.Labels) {
		m.Labels = o.Labels
	}
	for _, name := range kube.PackageAnnotations {
		if value, ok := o.Annotations[name]; ok && len(value) <= kube.MaxPackageAnnotationBytes {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[name] = value
		}
	}
	m.OwnerReferences = ownersOf(o)
	if len(m.Labels) == 0 && len(m.Annotations) == 0 && len(m.OwnerReferences) == 0 {
		return nil
	}
	return &m
}

// The schema's bounds on what is kept of owners.
const (
	maxOwners       = 16
	maxOwnerVersion = 317
	maxOwnerKind    = 63
	maxOwnerName    = 253
	maxOwnerUID     = 128
)

// ownersOf returns the owners of an object. Of owners beyond the bounds, none are kept: an
// object with a part of its owners would be collected with those.
func ownersOf(o *kube.Object) []v1alpha1.ObservedOwner {
	if len(o.OwnerReferences) > maxOwners {
		return nil
	}
	var owners []v1alpha1.ObservedOwner
	for i := range o.OwnerReferences {
		r := &o.OwnerReferences[i]
		// One without a uid was cut already.
		if r.UID == "" || len(r.UID) > maxOwnerUID || len(r.APIVersion) > maxOwnerVersion || len(r.Kind) > maxOwnerKind || len(r.Name) > maxOwnerName {
			return nil
		}
		owner := v1alpha1.ObservedOwner{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name, UID: string(r.UID)}
		if r.Controller != nil && *r.Controller {
			owner.Controller = v1alpha1.Enabled
		}
		owners = append(owners, owner)
	}
	return owners
}

// versionOf unpacks a version; nil for one that is absent, or has no readable body, or has
// none that is kept.
func versionOf(o *kube.Object) (*specguard.Version, error) {
	if o == nil || o.Unreadable != nil || o.Partial() {
		return nil, nil //nolint:nilerr // a version that cannot be read is one we do not have
	}
	body, err := o.Body()
	switch {
	case errors.Is(err, kube.ErrNotKept): // dropped in this moment
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("unpacking version %s of %s: %w", o.ResourceVersion, o.Name, err)
	}
	managers, err := managersOf(o)
	if err != nil {
		return nil, err
	}
	version := stampedVersion(o, body)
	version.Managers = managers
	return version, nil
}

// lastVersion unpacks the last version of an object that is gone. Its deletion is judged by
// its metadata, so the content may be missing.
func lastVersion(o *kube.Object) (*specguard.Version, error) {
	if o != nil && o.Partial() {
		return stampedVersion(o, nil), nil
	}
	return versionOf(o)
}

func stampedVersion(o *kube.Object, body []byte) *specguard.Version {
	return &specguard.Version{
		Body:            body,
		ResourceVersion: o.ResourceVersion,
		Generation:      o.Generation,
		Writer:          o.Writer(),
		WriterGroups:    specguard.ParseWriterGroups(o.Annotations[v1alpha1.AnnotationWriterGroups]),

		Applied: specguard.Applied{
			Stamp:  specguard.AppliedStamp(o.Annotations),
			By:     o.Annotations[v1alpha1.AnnotationApplier],
			Groups: specguard.ParseWriterGroups(o.Annotations[v1alpha1.AnnotationApplierGroups]),
		},
		BreakGlassReason: o.Annotations[v1alpha1.AnnotationBreakGlassReason],
		Labels:           o.Labels,
	}
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
