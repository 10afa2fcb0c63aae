// SPDX-License-Identifier: Apache-2.0

package remediation

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line is a write of the executor as the API server tells it.
func line(id, namespace, name string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":%q,"stage":"ResponseComplete","verb":"update","user":{"username":%q},`+
		`"objectRef":{"resource":"deployments","apiGroup":"apps","namespace":%q,"name":%q},"responseStatus":{"code":200}}`, id, ExecutorUser, namespace, name) + "\n"
}

func TestAnAuditLogReadsEachLineOnceItIsComplete(t *testing.T) {
	log, err := NewAuditLog(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Writes("shop"); err == nil {
		t.Error("a log that is not there has no writes")
	}
	file, err := os.Create(log.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() }) // each write was checked
	second, third := line("2", "shop", "api"), line("3", "shop", "web")
	steps := []struct {
		name, added string
		want        []string
		damaged     int
	}{
		{"a line, and a part of the next", line("1", "shop", "web") + second[:40], []string{"web"}, 0},
		{"more of it, and still no end", second[40 : len(second)-1], []string{"web"}, 0},
		{"its end", second[len(second)-1:], []string{"web", "api"}, 0},
		{"nothing", "", []string{"web", "api"}, 0},
		{"another namespace's, and no event", line("4", "bank", "pay") + "{}\n", []string{"web", "api"}, 1},
		{"a write that is told again, and a new one", second + third, []string{"web", "api", "web"}, 1},
	}
	for _, step := range steps { // each begins where the one before ended
		if _, err := file.WriteString(step.added); err != nil {
			t.Fatal(err)
		}
		got, err := log.Writes("shop")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range got.Writes {
			names = append(names, got.Writes[i].Name)
		}
		if diff := cmp.Diff(step.want, names); diff != "" || got.Damaged != step.damaged {
			t.Errorf("after %s: %d lines are damaged, want %d; writes (-want +got):\n%s", step.name, got.Damaged, step.damaged, diff)
		}
	}
	if other, err := log.Writes("bank"); err != nil || len(other.Writes) != 1 || other.Events != 5 {
		t.Errorf("another namespace has %+v, %v", other, err)
	}
}
