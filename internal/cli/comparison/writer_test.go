// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/actions"
)

func TestDiffWriter_ColorsOnTerminals(t *testing.T) {
	w := &Writer{Color: true}
	w.WriteChanges([]actions.Change{{Path: "/a", Operation: "Changed", Before: "1", After: "2"}, {Path: "/l", Operation: "Changed", Reordered: true, Before: `["a","b"]`, After: `["b","a"]`}})
	want := "\x1b[36m@@ /a @@\x1b[0m\n\x1b[31m-1\x1b[0m\n\x1b[32m+2\x1b[0m\n" +
		"\x1b[36m@@ /l @@ reordered\x1b[0m\n" +
		"\x1b[31m-[\x1b[0m\n\x1b[31m-  \"a\",\x1b[0m\n\x1b[31m-  \"b\"\x1b[0m\n\x1b[31m-]\x1b[0m\n" +
		"\x1b[32m+[\x1b[0m\n\x1b[32m+  \"b\",\x1b[0m\n\x1b[32m+  \"a\"\x1b[0m\n\x1b[32m+]\x1b[0m\n"
	if diff := cmp.Diff(want, w.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
