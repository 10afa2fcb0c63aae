// SPDX-License-Identifier: Apache-2.0

package resync

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// documented are the rows of a table in the users' page, without its head.
func documented(t *testing.T, table string) [][]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/reference/resync.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(page), "<!-- begin "+table+" -->\n")
	text, _, ends := strings.Cut(rest, "<!-- end "+table+" -->")
	if !begins || !ends {
		t.Fatalf("the page has no table %s", table)
	}
	var rows [][]string
	for line := range strings.Lines(text) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("the table %s is empty", table)
	}
	return rows[2:]
}

func TestTheDocumentedThresholdsAreThoseThatHold(t *testing.T) {
	for _, row := range documented(t, "threshold") {
		share, err := ParseThreshold(row[0])
		if err != nil {
			t.Fatal(err)
		}
		total, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.Itoa(share.Of(total)); got != row[2] {
			t.Errorf("%s of %s is %s, the page says %s", row[0], row[1], got, row[2])
		}
	}
}

// TestTheDocumentedRowsOfRecreationAreThoseThatDecide begins with an object for
// which all rows hold, and takes away one after the other.
func TestTheDocumentedRowsOfRecreationAreThoseThatDecide(t *testing.T) {
	d := Deletion{Retired: true, NamespaceTerminating: true, Management: v1alpha1.Unmanaged, BodyTooLarge: true}
	remedies := map[DeletionReason]func(){
		ReasonRetired:              func() { d.Retired = false },
		ReasonNamespaceTerminating: func() { d.NamespaceTerminating = false },
		ReasonNotGuarded:           func() { d.Guarded = true },
		ReasonUnmanaged:            func() { d.Management = v1alpha1.Managed },
		ReasonBodyTooLarge:         func() { d.BodyTooLarge = false },
		ReasonNeverAuthorized:      func() { d.Origin = v1alpha1.OriginImported },
		ReasonImported:             func() { d.Origin = v1alpha1.OriginCreated },
		ReasonResyncOff:            func() { d.Resync = true },
		ReasonUnattributed:         func() { d.Attributed = true },
		ReasonDeletedOutOfBand:     func() {},
	}
	rows := documented(t, "recreation")
	for _, row := range rows {
		got, reason := Deleted(d)
		if string(got) != row[1] || "`"+string(reason)+"`" != row[2] {
			t.Fatalf("%s (%s), the page says %s (%s)", got, reason, row[1], row[2])
		}
		remedies[reason]()
	}
	if len(rows) != len(remedies) {
		t.Errorf("the page has %d rows, there are %d", len(rows), len(remedies))
	}
}
