// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

// shown is how the page writes a moment.
const shown = "Mon 2006-01-02 15:04 MST"

// table reads the rows below a header of docs/reference/maintenance-window.md.
func table(t *testing.T, header string, atLeast int) [][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "maintenance-window.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), header+"\n")
	if !found {
		t.Fatalf("the page has no table %q", header)
	}
	var rows [][]string
	for line := range strings.Lines(rest) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "|---") {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells[0], cells[len(cells)-1] = strings.TrimPrefix(cells[0], "| "), strings.TrimSuffix(cells[len(cells)-1], " |")
		if want := strings.Count(header, "|") - 1; len(cells) != want {
			t.Fatalf("%q has %d cells, not %d", line, len(cells), want)
		}
		rows = append(rows, cells)
	}
	if len(rows) < atLeast {
		t.Fatalf("the table has %d rows", len(rows))
	}
	return rows
}

// pageSpec reads a schedule as the page writes it; the zone is that of its times.
func pageSpec(t *testing.T, windowCell, days, allowed string) (window.Spec, *time.Location) {
	t.Helper()
	var spec window.Spec
	zone := time.UTC
	if windowCell != "no window" {
		at := strings.LastIndexByte(windowCell, ' ')
		m := window.MaintenanceWindow{TimeZone: windowCell[at+1:]}
		if windowCell[:at] != "whole day" {
			m.Start, m.End, _ = strings.Cut(windowCell[:at], "-")
		}
		spec.MaintenanceWindow = &m
		var err error
		if zone, err = time.LoadLocation(m.TimeZone); err != nil {
			t.Fatal(err)
		}
	}
	switch days {
	case "every day":
	case "Monday to Friday":
		spec.AllowedDays = workdays
	default:
		spec.AllowedDays = []string{days}
	}
	if allowed != "any" {
		spec.AllowedStart, spec.AllowedEnd, _ = strings.Cut(allowed, "-")
	}
	return spec, zone
}

// moment finds the one that the zone shows so, weekday and abbreviation included.
func moment(t *testing.T, text string, zone *time.Location) time.Time {
	t.Helper()
	local, err := time.Parse("2006-01-02 15:04", strings.Join(strings.Fields(text)[1:3], " "))
	if err != nil {
		t.Fatal(err)
	}
	for offset := -14 * time.Hour; offset <= 14*time.Hour; offset += 15 * time.Minute {
		if m := local.Add(-offset).In(zone); m.Format(shown) == text {
			return m
		}
	}
	t.Fatalf("%v never shows %q", zone, text)
	return time.Time{}
}

func TestPage_Examples(t *testing.T) {
	for _, row := range table(t, "| Window | Days | Allowed times | At | May act | Until |", 12) {
		spec, zone := pageSpec(t, row[0], row[1], row[2])
		state := parse(t, spec).At(moment(t, row[3], zone))
		act, until := "no", "always"
		if state.Open {
			act = "yes"
		}
		if !state.Until.IsZero() {
			until = state.Until.Format(shown)
		}
		if diff := cmp.Diff(row[4:], []string{act, until}); diff != "" {
			t.Errorf("%s (-page +code):\n%s", strings.Join(row, " | "), diff)
		}
	}
}

// TestPage_ClocksThatChange lists what opens on a date, from its first moment on.
// An opening goes on over the change of the date.
func TestPage_ClocksThatChange(t *testing.T) {
	for _, row := range table(t, "| Window | Beginning on | Open | In all |", 20) {
		spec, zone := pageSpec(t, row[0], "every day", "any")
		s := parse(t, spec)
		date, err := time.Parse("Mon 2006-01-02", row[1])
		if err != nil || date.Format("Mon 2006-01-02") != row[1] {
			t.Fatalf("date %s: %v", row[1], err)
		}
		// From noon to noon: no zone of the page changes its clocks at noon.
		noon := time.Date(date.Year(), date.Month(), date.Day()-1, 12, 0, 0, 0, zone)
		var open []string
		var all time.Duration
		for now := noon; now.Before(noon.Add(48 * time.Hour)); {
			state := s.At(now)
			if state.Open && state.Since.Format("Mon 2006-01-02") == row[1] {
				open = append(open, state.Since.Format("15:04 MST")+" to "+state.Until.Format("15:04 MST"))
				all += state.Until.Sub(state.Since)
			}
			now = state.Until
		}
		if len(open) == 0 {
			open = []string{"not at all"}
		}
		inAll := strings.TrimSuffix(all.String(), "0s")
		if all == 0 {
			inAll = "0h0m"
		}
		if diff := cmp.Diff(row[2:], []string{strings.Join(open, ", "), inAll}); diff != "" {
			t.Errorf("%s (-page +code):\n%s", strings.Join(row, " | "), diff)
		}
	}
}

func TestPage_Refusals(t *testing.T) {
	for _, row := range table(t, "| Written | Refused with |", 12) {
		written := map[string]any{"start": "02:00", "end": "06:00", "timeZone": "UTC"}
		if err := yaml.Unmarshal([]byte("{"+strings.Trim(row[0], "`")+"}"), &written); err != nil {
			t.Fatal(err)
		}
		text := func(key string) string { s, _ := written[key].(string); return s }
		spec := window.Spec{
			MaintenanceWindow: nightly(text("start"), text("end"), text("timeZone")),
			AllowedStart:      text("allowedStart"), AllowedEnd: text("allowedEnd"),
		}
		if days, given := written["allowedDays"].([]any); given {
			spec.AllowedDays = []string{}
			for _, day := range days {
				spec.AllowedDays = append(spec.AllowedDays, day.(string))
			}
		}
		_, errs := window.Parse(spec, path, nil)
		if len(errs) != 1 {
			t.Fatalf("%s: %d errors: %v", row[0], len(errs), errs)
		}
		if diff := cmp.Diff(strings.Trim(row[1], "`"), errs[0].ErrorBody()); diff != "" {
			t.Errorf("%s (-page +code):\n%s", row[0], diff)
		}
	}
}
