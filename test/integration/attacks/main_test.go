// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

const (
	// patience bounds every wait; the machine may be busy.
	patience = 40 * time.Second
	// redisPassword is that of Plumbline's user.
	redisPassword = "canary-of-the-redis-password"
)

// One installation serves all tests; each works in namespaces of its own.
var (
	cluster *envtest.Environment
	config  *rest.Config
	admin   client.Client
	// workDir holds kubeconfigs and what the processes need.
	workDir string
	stream  *redis.Client
	hook    *server.Process
	judge   *server.Process
	// hookPort is where the webhook listens, and hookArgs are its arguments.
	hookPort int
	hookArgs []string
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attacks:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrllog.SetLogger(klog.Background())
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	helm, err := rendered.Find(ctx)
	if err != nil {
		return 1, err
	}
	// The path of a socket may have 107 bytes.
	if workDir, err = os.MkdirTemp("", "plattack"); err != nil {
		return 1, fmt.Errorf("making a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workDir)) }()
	if cluster, err = apiserver.Start(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	config = cluster.Config
	kubeconfig := filepath.Join(workDir, "admin")
	if err := os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600); err != nil {
		return 1, fmt.Errorf("writing the kubeconfig: %w", err)
	}
	// It fills the roles view, edit and admin with what the chart adds to them.
	controllers, err := apiserver.StartControllers(workDir, kubeconfig, "clusterrole-aggregation-controller")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, controllers.Stop(context.WithoutCancel(ctx))) }()
	if err := install(ctx, helm); err != nil {
		return 1, err
	}
	stop, err := startAll(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// startAll starts Redis and both processes, with the arguments of the chart's
// pods; stop ends those that were started.
func startAll(ctx context.Context) (stop func() error, err error) {
	var stops []func() error
	stop = func() error {
		var errs []error
		for _, stop := range slices.Backward(stops) {
			errs = append(errs, stop())
		}
		return errors.Join(errs...)
	}
	if err := server.Build(ctx, workDir, "webhook", "assessor"); err != nil {
		return stop, err
	}
	redisArgs, err := startRedis(ctx, &stops)
	if err != nil {
		return stop, err
	}
	key := filepath.Join(workDir, "digest.key")
	if err := os.WriteFile(key, []byte("a key of sixteen bytes and more"), 0o600); err != nil {
		return stop, fmt.Errorf("writing the digest key: %w", err)
	}
	// A busy machine needs more than the default for a call.
	common := append([]string{"--log-level=debug", "--namespace=" + rendered.Namespace, "--redis-timeout=5s"}, redisArgs...)
	hookArgs = append([]string{
		"--kubeconfig=" + filepath.Join(workDir, "plumbline-webhook"), "--port=" + strconv.Itoa(hookPort), "--server-names=127.0.0.1",
		"--stamp-writer=false", "--drain-delay=0s", "--certificate-settle=1s",
	}, common...)
	if err := startHook(); err != nil {
		return stop, err
	}
	stops = append(stops, func() error { return hook.Stop() }) // a test may have started another one
	judgeArgs := append([]string{
		"--kubeconfig=" + filepath.Join(workDir, "plumbline-assessor"), "--role=assess", "--leader-elect=true",
		"--stamped-groups=devs,ops", "--stamp-writer=false", "--digest-key-file=" + key, "--record-grace=500ms",
	}, common...)
	if judge, err = server.Start(filepath.Join(workDir, "assessor"), judgeArgs...); err != nil {
		return stop, err
	}
	stops = append(stops, judge.Stop)
	return stop, errors.Join(hook.Ready(ctx), judge.Ready(ctx))
}

func startHook() (err error) {
	hook, err = server.Start(filepath.Join(workDir, "webhook"), hookArgs...)
	return err
}

// startRedis starts Redis with the rights that the chart gives, and returns the
// arguments by which the processes log in.
func startRedis(ctx context.Context, stops *[]func() error) ([]string, error) {
	port, err := freeport.Claim()
	if err != nil {
		return nil, err
	}
	acl, password := filepath.Join(workDir, "users.acl"), filepath.Join(workDir, "password")
	// The tests read everything over the socket, as the default user.
	users := "user default on nopass ~* +@all\n" +
		"user plumbline on >" + redisPassword + " ~plumbline:* resetchannels -@all +@stream +@connection +time -@admin -@dangerous\n"
	if err := errors.Join(os.WriteFile(acl, []byte(users), 0o600), os.WriteFile(password, []byte(redisPassword+"\n"), 0o600)); err != nil {
		return nil, fmt.Errorf("writing what Redis needs: %w", err)
	}
	r, err := server.StartRedis(ctx, workDir, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--aclfile", acl)
	if err != nil {
		return nil, err
	}
	*stops = append(*stops, func() error { r.Kill(); return nil })
	stream = r.Client()
	return []string{"--redis-address=127.0.0.1:" + strconv.Itoa(port), "--redis-username=plumbline", "--redis-password-file=" + password}, nil
}

// tokenOf is a token of one of the chart's service accounts.
func tokenOf(ctx context.Context, account string) (string, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("building a client: %w", err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(7200))}}
	answer, err := kube.CoreV1().ServiceAccounts(rendered.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of %s: %w", account, err)
	}
	return answer.Status.Token, nil
}

// writeKubeconfig writes one that logs in with a token of a service account.
func writeKubeconfig(ctx context.Context, account string) error {
	token, err := tokenOf(ctx, account)
	if err != nil {
		return err
	}
	return apiserver.WriteKubeconfig(filepath.Join(workDir, account), config, &clientcmdapi.AuthInfo{Token: token})
}
