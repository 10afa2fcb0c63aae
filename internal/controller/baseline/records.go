// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// Bounds of the record index. Records explain changes of the last minutes; what
// is older has been joined, or never will be.
const (
	maxRecords       = 20000
	maxRecordsPerUID = 64
)

// Records keeps the webhook's records of writes until they are joined, by uid.
// Its methods may be called from any goroutine.
type Records struct {
	mu      sync.Mutex
	byUID   map[string][]entry
	order   []arrival // oldest first
	serial  uint64
	healthy bool
}

type entry struct {
	serial uint64
	record specguard.WriteRecord
}

type arrival struct {
	uid    string
	serial uint64
}

// NewRecords returns an empty index of a source that is not healthy yet.
func NewRecords() *Records {
	return &Records{byUID: map[string][]entry{}}
}

// SetHealthy says whether the source can be read. While it cannot, the absence
// of a record says nothing.
func (r *Records) SetHealthy(healthy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healthy = healthy
}

// Add takes records in the order of the source.
func (r *Records) Add(records ...specguard.WriteRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range records {
		r.serial++
		list := r.byUID[record.UID]
		list = append(list, entry{r.serial, record})
		if len(list) > maxRecordsPerUID {
			list = append([]entry(nil), list[len(list)-maxRecordsPerUID:]...)
		}
		r.byUID[record.UID] = list
		r.order = append(r.order, arrival{record.UID, r.serial})
	}
	for len(r.order) > maxRecords {
		r.drop(r.order[0])
		r.order = r.order[1:]
	}
}

// joinable are the records of some uids at one moment.
type joinable struct {
	records []specguard.WriteRecord
	from    []arrival // parallel to records
	healthy bool
}

// of returns the records of the given uids that are not consumed.
func (r *Records) of(uids ...string) joinable {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := joinable{healthy: r.healthy}
	seen := map[string]bool{"": true}
	for _, uid := range uids {
		if seen[uid] {
			continue
		}
		seen[uid] = true
		for _, e := range r.byUID[uid] {
			j.records = append(j.records, e.record)
			j.from = append(j.from, arrival{uid, e.serial})
		}
	}
	return j
}

// has says whether a uid has records.
func (r *Records) has(uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byUID[uid]) > 0
}

// consume drops records that were joined.
func (r *Records) consume(joined []arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range joined {
		r.drop(a)
	}
}

func (r *Records) drop(a arrival) {
	list := r.byUID[a.uid]
	for i := range list {
		if list[i].serial != a.serial {
			continue
		}
		list = append(append([]entry(nil), list[:i]...), list[i+1:]...)
		if len(list) == 0 {
			delete(r.byUID, a.uid)
			return
		}
		r.byUID[a.uid] = list
		return
	}
}
