// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Bounds of the texts that Baselines share. A tenant may fill some of them.
const (
	maxSharedTexts = 4096
	maxSharedBytes = 128
)

// Sharer has the Baselines of a cache share equal texts and maps, which a decoder allocates for each
// Baseline. Its zero value is ready for use; its methods may be called from any goroutine.
type Sharer struct {
	mu     sync.Mutex
	texts  map[string]string
	labels map[label]map[string]string
}

// label is the only label that the assessor sets.
type label struct{ key, value string }

// Transform drops the managedFields of an object that is about to be cached, and has a Baseline share its
// texts; it is a cache.TransformFunc. All other fields keep their values.
func (s *Sharer) Transform(object any) (any, error) {
	object, err := cache.TransformStripManagedFields()(object)
	b, is := object.(*v1alpha1.Baseline)
	if err != nil || !is {
		return object, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range []*string{&b.Kind, &b.APIVersion, &b.Namespace, &b.Spec.Target.APIVersion, &b.Spec.Target.Kind} {
		*text = s.share(*text)
	}
	b.Labels = s.shareLabels(b.Labels)
	if a := b.Spec.Authorized; a != nil {
		a.By, a.Origin = s.share(a.By), v1alpha1.Origin(s.share(string(a.Origin)))
	}
	s.shareStatus(&b.Status)
	shareWithin(b)
	return b, nil
}

func (s *Sharer) shareStatus(status *v1alpha1.BaselineStatus) {
	status.State = v1alpha1.DriftState(s.share(string(status.State)))
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Reason, c.Message = s.share(c.Type), s.share(c.Reason), s.share(c.Message)
		c.Status = metav1.ConditionStatus(s.share(string(c.Status)))
	}
	for _, text := range []*string{&status.Observed.Writer, &status.Observed.StampPolicy} {
		*text = s.share(*text)
	}
	for i := range status.Guards {
		status.Guards[i] = s.share(status.Guards[i])
	}
	if status.Selection != nil {
		for i := range status.Selection.Guards {
			status.Selection.Guards[i].UID = s.share(status.Selection.Guards[i].UID)
		}
	}
}

// share returns the known text that equals a text. Once too many are known, they are forgotten, and
// Baselines go on with the texts that they have.
func (s *Sharer) share(text string) string {
	if text == "" || len(text) > maxSharedBytes {
		return text
	}
	if known, ok := s.texts[text]; ok {
		return known
	}
	if s.texts == nil || len(s.texts) >= maxSharedTexts {
		s.texts = map[string]string{}
	}
	s.texts[text] = text
	return text
}

func (s *Sharer) shareLabels(labels map[string]string) map[string]string {
	if len(labels) != 1 {
		return labels
	}
	for key, value := range labels {
		if len(key)+len(value) > 2*maxSharedBytes {
			return labels
		}
		if known, ok := s.labels[label{key, value}]; ok {
			return known
		}
		if s.labels == nil || len(s.labels) >= maxSharedTexts {
			s.labels = map[label]map[string]string{}
		}
		s.labels[label{key, value}] = labels
	}
	return labels
}

// shareWithin shares what a Baseline says twice of one object.
func shareWithin(b *v1alpha1.Baseline) {
	observed := &b.Status.Observed
	if a := b.Spec.Authorized; a != nil {
		shareText(&a.UID, observed.UID)
		shareText(&a.Hash, observed.Hash)
		if last := b.Status.LastReady; last != nil {
			shareText(&last.Revision, a.Revision)
			shareText(&last.Hash, a.Hash)
		}
	}
	shareText(&observed.FullHash, observed.Hash)
	selection := b.Status.Selection
	if m := observed.Metadata; m != nil && selection != nil && (m.Labels == nil) == (selection.Labels == nil) && maps.Equal(m.Labels, selection.Labels) {
		selection.Labels = m.Labels
	}
}

func shareText(text *string, with string) {
	if *text == with {
		*text = with
	}
}
