// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ZoneLoader finds a time zone by its IANA name, like [time.LoadLocation].
type ZoneLoader func(name string) (*time.Location, error)

// maxZoneName bounds a name in bytes; the longest one in the database has 32.
const maxZoneName = 64

// loadZone refuses what would mean another thing on another machine, whatever
// the loader makes of it: the machine's own zone under its several names, and
// the trees that only some machines have (right/ counts leap seconds).
func loadZone(name string, path *field.Path, load ZoneLoader) (*time.Location, *field.Error) {
	const fix = "write an IANA time zone such as Europe/Berlin, or UTC"
	if load == nil {
		load = time.LoadLocation
	}
	switch lower := strings.ToLower(name); {
	case name == "":
		return nil, field.Required(path, fix)
	case len(name) > maxZoneName:
		return nil, field.TooLong(path, name, maxZoneName)
	case lower == "local", lower == "localtime", lower == "posixrules":
		return nil, field.Invalid(path, name, "differs from machine to machine; "+fix)
	case strings.HasPrefix(lower, "right/"), strings.HasPrefix(lower, "posix/"):
		return nil, field.Invalid(path, name, fmt.Sprintf("leave out %q", name[:len("right/")]))
	}
	zone, err := load(name)
	if err != nil {
		return nil, field.Invalid(path, name, fmt.Sprintf("%s (%v)", fix, err))
	}
	if zone == nil {
		return nil, field.Invalid(path, name, fix)
	}
	return zone, nil
}

// stretch is a run of whole seconds, from inclusive and to exclusive in Unix
// time, in which clocks of a zone are one offset ahead of UTC.
type stretch struct{ from, to, offset int64 }

func (r stretch) holds(at int64) bool { return at >= r.from && at < r.to }

// stretchAt finds a stretch around a moment. It need not be the longest one.
func stretchAt(zone *time.Location, at int64) stretch {
	t := time.Unix(at, 0).In(zone)
	_, offset := t.Zone()
	r := stretch{from: math.MinInt64, to: math.MaxInt64, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		r.from = start.Unix()
	}
	if !end.IsZero() {
		r.to = end.Unix()
	}
	if r.holds(at) {
		return r
	}
	// On 31 December of a leap year, in zones whose rule goes on after their last
	// listed change, Go's bounds leave the moment out (golang/go#81583): the year
	// is a day too short. The offset is right, and holds for that day in UTC.
	r.from = at - floorMod(at, secondsPerDay)
	r.to = r.from + secondsPerDay
	return r
}

// wall is what clocks show.
type wall struct {
	weekday time.Weekday
	at      timeOfDay
}

func (r stretch) wall(at int64) wall {
	local := at + r.offset
	t := floorMod(local, secondsPerDay)
	days := (local - t) / secondsPerDay
	return wall{
		weekday: time.Weekday(floorMod(days+int64(time.Thursday), 7)), // 1970-01-01 was a Thursday
		at:      timeOfDay(t),
	}
}

// floorMod is the remainder that is never negative, for the time before 1970.
func floorMod(a, b int64) int64 { return (a%b + b) % b }
