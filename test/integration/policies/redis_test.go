// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/test/chart/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// startRedis starts a real Redis with the arguments and the ACL of the chart, in
// which our user gets in; only port, address and the ACL's path differ. It returns
// address and password.
func startRedis(t *testing.T) (address, password string) {
	t.Helper()
	objects, err := apiserver.Render(t.Context(), helm)
	if err != nil {
		t.Fatal(err)
	}
	var secret *corev1.Secret
	var redisArgs []string
	for _, o := range objects {
		switch rendered.ID(o) {
		case "Secret/plumbline-system/plumbline-redis":
			secret, err = rendered.Convert[corev1.Secret](o)
		case "Deployment/plumbline-system/plumbline-redis":
			var d *appsv1.Deployment
			if d, err = rendered.Convert[appsv1.Deployment](o); err == nil {
				redisArgs = d.Spec.Template.Spec.Containers[0].Args
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	acl := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(acl, secret.Data["users.acl"], 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	login := redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(port), Username: "plumbline", Password: string(secret.Data["password"])}
	args := slices.Concat(redisArgs, []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--aclfile", acl})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	running, err := server.StartRedisWith(ctx, login, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			t.Logf("redis-server said\n%s", running.Said())
		}
	})
	return login.Addr, login.Password
}

func TestTheRedisUserMayUseStreamsUnderOurPrefixAndNothingElse(t *testing.T) {
	address, password := startRedis(t)
	plumbline := connect(t, &redis.Options{Addr: address, Username: "plumbline", Password: password})
	tests := map[string]struct {
		command []any
		refused bool
	}{
		"append a detail":                {[]any{"XADD", "plumbline:details", "MAXLEN", "~", "100000", "*", "r", "{}"}, false},
		"trim by age":                    {[]any{"XTRIM", "plumbline:details", "MINID", "~", "0-1"}, false},
		"read a range":                   {[]any{"XRANGE", "plumbline:details", "-", "+"}, false},
		"read from a position":           {[]any{"XREAD", "COUNT", "10", "STREAMS", "plumbline:details", "0"}, false},
		"describe the stream":            {[]any{"XINFO", "STREAM", "plumbline:details"}, false},
		"ask the time":                   {[]any{"TIME"}, false},
		"append to somebody else's key":  {[]any{"XADD", "others:details", "*", "r", "{}"}, true},
		"a prefix that only looks alike": {[]any{"XADD", "plumbline2:details", "*", "r", "{}"}, true},
		"delete a key":                   {[]any{"DEL", "plumbline:details"}, true},
		"flush everything":               {[]any{"FLUSHALL"}, true},
		"list keys":                      {[]any{"KEYS", "*"}, true},
		"read the configuration":         {[]any{"CONFIG", "GET", "*"}, true},
		"list users":                     {[]any{"ACL", "LIST"}, true},
		"run a script":                   {[]any{"EVAL", "return 1", "0"}, true},
		"kill a client":                  {[]any{"CLIENT", "KILL", "TYPE", "normal"}, true},
		"subscribe":                      {[]any{"PUBLISH", "plumbline:x", "y"}, true},
		"stop the server":                {[]any{"SHUTDOWN", "NOSAVE"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := plumbline.Do(t.Context(), test.command...).Err()
			if refused := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); refused != test.refused {
				t.Errorf("%v: error %v, refused should be %v", test.command, err, test.refused)
			}
		})
	}
	strangers := map[string]*redis.Options{
		"nobody":                {Addr: address},
		"a wrong password":      {Addr: address, Username: "plumbline", Password: "guess"},
		"the default user":      {Addr: address, Username: "default", Password: password},
		"the password as admin": {Addr: address, Username: "admin", Password: password},
	}
	for name, options := range strangers {
		t.Run(name, func(t *testing.T) {
			if err := connect(t, options).Ping(t.Context()).Err(); err == nil {
				t.Error("got in")
			}
		})
	}
}

func connect(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(options)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
