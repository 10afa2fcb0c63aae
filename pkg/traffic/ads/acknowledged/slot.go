// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ads"
)

// slot is a [Route] as it is kept. There may be fifty for each of ten thousand proxies,
// and of most there is nothing against them.
type slot struct {
	name    string
	has     ads.Version
	former  moment
	changed uint64
	doubt   *doubt
}

type doubt struct {
	about ads.Version
	why   string
}

// moment is a time in nanoseconds since 1970; 0 is none.
type moment int64

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.UnixNano())
}

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

func (s *slot) route() Route {
	r := Route{Name: s.name, Has: s.has, Former: s.former.time()}
	if s.doubt != nil {
		r.About, r.Why = s.doubt.about, s.doubt.why
	}
	return r
}

func (s *slot) set(r Route, revision uint64) {
	*s = slot{name: s.name, has: r.Has, former: momentOf(r.Former), changed: revision}
	if r.Why != "" {
		s.doubt = &doubt{r.About, r.Why}
	}
}

// short is as much of a text as is kept.
func short(text string) string {
	if len(text) <= maxWhy {
		return text
	}
	return strings.ToValidUTF8(text[:maxWhy], "") + "…"
}
