// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"container/list"
	"reflect"
	"slices"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// recordBounds are the bounds of a record index. Records explain changes of the
// last minutes; what is older has been joined, or never will be.
type recordBounds struct {
	count  int // of all objects
	perUID int
	bytes  int // of all objects, as sizeOf estimates them
}

// Whoever reaches the webhook's port, or Redis, chooses the names, paths and
// groups in a record, 16 KiB of them (details, size.go). The record of an ordinary
// write takes about 1 KiB, so of those it is the number that is bounded.
var defaultRecordBounds = recordBounds{count: 20_000, perUID: 64, bytes: 32 << 20}

// Records keeps the webhook's records of writes until they are joined, by uid.
// When a bound is met the oldest make room: of the object if it has too many,
// else of all. Its methods may be called from any goroutine.
type Records struct {
	bounds recordBounds

	mu      sync.Mutex
	byUID   map[string][]*entry // oldest first
	order   *list.List          // of *entry, oldest first
	bytes   int                 // of all entries
	serial  uint64
	healthy bool
}

type entry struct {
	serial uint64
	size   int
	record specguard.WriteRecord
	place  *list.Element // in Records.order
}

type arrival struct {
	uid    string
	serial uint64
}

// Displaced counts records that made room for others before anything joined
// them, by the bound that was met: too many of one object, too many at all, too
// many bytes.
type Displaced struct {
	PerObject, Count, Bytes int
}

// NewRecords returns an empty index of a source that is not healthy yet.
func NewRecords() *Records { return newRecords(defaultRecordBounds) }

func newRecords(bounds recordBounds) *Records {
	return &Records{bounds: bounds, byUID: map[string][]*entry{}, order: list.New()}
}

// SetHealthy says whether the source can be read. While it cannot, the absence
// of a record says nothing.
func (r *Records) SetHealthy(healthy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.healthy = healthy
}

// Add takes records in the order of the source, and tells how many it dropped
// to stay within its bounds.
func (r *Records) Add(records ...specguard.WriteRecord) Displaced {
	r.mu.Lock()
	defer r.mu.Unlock()
	var dropped Displaced
	for i := range records {
		own := r.put(records[i])
		if len(own) > r.bounds.perUID {
			r.remove(own[0])
			dropped.PerObject++
		}
		for r.order.Len() > r.bounds.count {
			r.removeOldest()
			dropped.Count++
		}
		for r.bytes > r.bounds.bytes {
			r.removeOldest()
			dropped.Bytes++
		}
	}
	return dropped
}

// put adds a record and returns all of its object.
func (r *Records) put(record specguard.WriteRecord) []*entry {
	// A list that was cut still holds on to what was cut off.
	record.Fields, record.Groups = slices.Clone(record.Fields), slices.Clone(record.Groups)
	r.serial++
	e := &entry{serial: r.serial, size: sizeOf(&record), record: record}
	e.place = r.order.PushBack(e)
	r.bytes += e.size
	r.byUID[record.UID] = append(r.byUID[record.UID], e)
	return r.byUID[record.UID]
}

// entryBytes is what an entry takes beside text: itself, its place in the order,
// its share of the map, and by how much the allocator rounds up its texts.
var entryBytes = int(reflect.TypeFor[entry]().Size()+reflect.TypeFor[list.Element]().Size()) + 200

// sizeOf estimates what a record takes in memory, in bytes.
func sizeOf(r *specguard.WriteRecord) int {
	const stringHeader = 16
	size := entryBytes
	for _, text := range []string{
		r.UID, r.APIVersion, r.Kind, r.Namespace, r.Name, string(r.Operation), r.Subresource,
		r.ResourceVersionBefore, r.HashAfter, r.User, r.FieldManager,
	} {
		size += len(text)
	}
	for _, texts := range [][]string{r.Fields, r.Groups} {
		size += stringHeader * len(texts)
		for _, text := range texts {
			size += len(text)
		}
	}
	return size
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
	for _, e := range r.byUID[a.uid] {
		if e.serial == a.serial {
			r.remove(e)
			return
		}
	}
}

// removeOldest makes room; the index must hold something.
func (r *Records) removeOldest() {
	r.remove(r.order.Front().Value.(*entry))
}

func (r *Records) remove(e *entry) {
	r.order.Remove(e.place)
	r.bytes -= e.size
	uid := e.record.UID
	own := slices.DeleteFunc(r.byUID[uid], func(other *entry) bool { return other == e })
	if len(own) == 0 {
		delete(r.byUID, uid)
		return
	}
	r.byUID[uid] = own
}
