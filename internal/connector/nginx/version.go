// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// Version of nginx: major, minor, patch.
type Version [3]int

// oldestWithoutLoss has keepalive_min_timeout.
var oldestWithoutLoss = Version{1, 27, 4}

var versionLine = regexp.MustCompile(`nginx/([0-9]{1,5})\.([0-9]{1,5})\.([0-9]{1,5})`)

// ParseVersion reads what `nginx -v` says.
func ParseVersion(said string) (Version, error) {
	parts := versionLine.FindStringSubmatch(said)
	if parts == nil {
		return Version{}, fmt.Errorf("reading the version of nginx: %.100q has no version", said)
	}
	var v Version
	for i := range v {
		n, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("reading the version of nginx: %w", err)
		}
		v[i] = n
	}
	return v, nil
}

// LosesRequests says whether a reload of that version closes a connection on which a request is on its
// way.
func (v Version) LosesRequests() bool { return slices.Compare(v[:], oldestWithoutLoss[:]) < 0 }
