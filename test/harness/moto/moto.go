// SPDX-License-Identifier: Apache-2.0

// Package moto runs moto in tests, which answers as the API of AWS does: the one that `bin/cluster which moto` prints.
// Moto has the resources of an account, and divides no requests.
package moto

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

// limit is how long a moto may take to start, on a machine that others use too.
const limit = time.Minute

// Region and Account are those of the resources.
const (
	Region  = "eu-west-1"
	Account = "123456789012"
)

// Program is a moto that runs.
type Program struct {
	// Address is host:port of the API of all services.
	Address string
}

// Start one. It ends with the test. The environment of the test gets credentials, which moto does not check.
func Start(t *testing.T) *Program {
	t.Helper()
	path := os.Getenv("MOTO")
	if path == "" {
		t.Fatal(`MOTO is not set: run this by "make test-integration", or set it to what "bin/cluster which moto" prints`)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	p := &Program{Address: freeport.Address(t)}
	host, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "moto.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := child.Bind(exec.Command(path, "--host", host, "--port", port))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // that it was killed
		_ = log.Close()
		if t.Failed() {
			said, err := os.ReadFile(log.Name())
			lines := slices.DeleteFunc(strings.Split(string(said), "\n"), func(line string) bool { return strings.HasSuffix(line, `" 200 -`) })
			t.Logf("the moto said (%v), beside answers that went well:\n%s", err, strings.Join(lines, "\n"))
		}
	})
	poll.Until(t, limit, "the moto answers", func() error {
		_, err := p.Ask(context.WithoutCancel(t.Context()), "ec2", url.Values{"Action": {"DescribeSubnets"}, "Version": {"2016-11-15"}})
		return err
	})
	return p
}

// Ask makes a request of the query protocol to a service, by the name of the service in signatures, and returns the
// answer.
func (p *Program) Ask(ctx context.Context, service string, values url.Values) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.Address+"/", strings.NewReader(values.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=test/20300101/%s/%s/aws4_request, SignedHeaders=host, Signature=none", Region, service))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking moto for %s: %w", values.Get("Action"), err)
	}
	defer func() { _ = response.Body.Close() }() // only read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("asking moto for %s: %w", values.Get("Action"), err)
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking moto for %s: %s: %s", values.Get("Action"), response.Status, answer)
	}
	return string(answer), nil
}
