// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// readReversals takes reversals and the places of a fight out of a stored status, so that
// a fight goes on after a restart. A place whose path cannot be read, which only
// a foreign hand can have written, is left out.
func (s *State) readReversals(status *v1alpha1.BaselineStatus) {
	for i := range status.Reversals {
		f := Reversal{At: status.Reversals[i].ObservedTime.Time}
		for _, stored := range status.Reversals[i].Places {
			if place, ok := readPlace(stored.Path, stored.Aspect); ok {
				place.By, place.Class = stored.By, stored.Class
				f.Places = append(f.Places, place)
			}
		}
		s.Reversals = append(s.Reversals, f)
	}
	if status.Contention == nil {
		return
	}
	for _, stored := range status.Contention.Places {
		if place, ok := readPlace(stored.Path, stored.Aspect); ok {
			s.contested = append(s.contested, place)
		}
	}
}

func readPlace(text string, aspect v1alpha1.PlaceAspect) (place ReversalPlace, ok bool) {
	path, err := canon.ParsePath(text)
	return ReversalPlace{Path: path, Order: aspect == v1alpha1.AspectOrder}, err == nil
}

// writeReversals is the reverse of readReversals.
func (s *State) writeReversals(status *v1alpha1.BaselineStatus) {
	status.Reversals = nil
	for _, f := range s.Reversals[max(0, len(s.Reversals)-maxReversals):] {
		stored := v1alpha1.Reversal{ObservedTime: metav1.NewTime(f.At)}
		for _, place := range f.Places[:min(len(f.Places), maxReversalPlaces)] {
			stored.Places = append(stored.Places, v1alpha1.ReversalPlace{
				Path: place.Path.String(), Aspect: place.aspect(), By: place.By, Class: place.Class,
			})
		}
		status.Reversals = append(status.Reversals, stored)
	}
	status.Contention = s.Contention.DeepCopy()
	if status.Contention == nil {
		return
	}
	status.Contention.Places = nil
	for _, place := range s.contested[:min(len(s.contested), maxReversalPlaces)] {
		status.Contention.Places = append(status.Contention.Places, v1alpha1.Place{Path: place.Path.String(), Aspect: place.aspect()})
	}
}

func (p ReversalPlace) aspect() v1alpha1.PlaceAspect {
	if p.Order {
		return v1alpha1.AspectOrder
	}
	return v1alpha1.AspectValue
}
