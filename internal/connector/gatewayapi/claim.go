// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Claim is the use of one route by one release. Route is the kind and name of the route.
type Claim struct {
	Release types.NamespacedName
	Created time.Time
	Kind    string
	Route   types.NamespacedName
}

// Holder returns the release that has the route of a claim, if that is another one: the oldest, and of two of one age the
// first by name. A route has one release, even if its rules are several: a write for one rule has the status of all
// rules begin anew.
func Holder(mine Claim, all []Claim) (types.NamespacedName, bool) {
	first := mine
	for _, claim := range all {
		if claim.Kind == mine.Kind && claim.Route == mine.Route && claim.isBefore(first) {
			first = claim
		}
	}
	return first.Release, first.Release != mine.Release
}

func (c Claim) isBefore(other Claim) bool {
	if order := c.Created.Compare(other.Created); order != 0 {
		return order < 0
	}
	return c.Release.String() < other.Release.String()
}
