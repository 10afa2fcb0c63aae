// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"context"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/volume"
)

// closeWithin bounds how long a test waits for its store of records.
const closeWithin = time.Minute

// OpenRecords makes a store of records that is closed after the processes of the test have
// ended, and before its folder is removed. A call that a process has given up may still write.
func OpenRecords(t testing.TB) evidence.Store {
	t.Helper()
	store, err := volume.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		if err := store.Close(ctx); err != nil {
			t.Errorf("closing the store of records: %v", err)
		}
	})
	return store
}
