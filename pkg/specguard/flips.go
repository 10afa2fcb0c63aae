// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// readFlips takes flips and the places of a fight out of a stored status, so that
// a fight goes on after a restart. A place whose path cannot be read, which only
// a foreign hand can have written, is left out.
func (s *State) readFlips(status *v1alpha1.BaselineStatus) {
	for i := range status.Flips {
		f := Flip{At: status.Flips[i].ObservedTime.Time}
		for _, stored := range status.Flips[i].Places {
			if place, ok := readPlace(stored.Path, stored.Aspect); ok {
				place.By, place.Class = stored.By, stored.Class
				f.Places = append(f.Places, place)
			}
		}
		s.Flips = append(s.Flips, f)
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

func readPlace(text string, aspect v1alpha1.PlaceAspect) (place FlipPlace, ok bool) {
	path, err := canon.ParsePath(text)
	return FlipPlace{Path: path, Order: aspect == v1alpha1.AspectOrder}, err == nil
}

// writeFlips is the reverse of readFlips.
func (s *State) writeFlips(status *v1alpha1.BaselineStatus) {
	status.Flips = nil
	for _, f := range s.Flips[max(0, len(s.Flips)-maxFlips):] {
		stored := v1alpha1.Flip{ObservedTime: metav1.NewTime(f.At)}
		for _, place := range f.Places[:min(len(f.Places), maxFlipPlaces)] {
			stored.Places = append(stored.Places, v1alpha1.FlipPlace{
				Path: place.Path.String(), Aspect: place.aspect(), By: place.By, Class: place.Class,
			})
		}
		status.Flips = append(status.Flips, stored)
	}
	status.Contention = s.Contention.DeepCopy()
	if status.Contention == nil {
		return
	}
	status.Contention.Places = nil
	for _, place := range s.contested[:min(len(s.contested), maxFlipPlaces)] {
		status.Contention.Places = append(status.Contention.Places, v1alpha1.Place{Path: place.Path.String(), Aspect: place.aspect()})
	}
}

func (p FlipPlace) aspect() v1alpha1.PlaceAspect {
	if p.Order {
		return v1alpha1.AspectOrder
	}
	return v1alpha1.AspectValue
}
