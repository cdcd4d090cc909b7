// Package netpol is, once the command `vectors` has put the suite's own files beside this one, Kubernetes' suite of network policies on a cluster of
// maps: nothing is sent; what a case expects is written down with the objects it expects it of.
package netpol

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	net "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drawbridge.dev/peers/reach/suite/stub"
)

// TestPod is a Pod of the suite.
type TestPod struct{ Namespace, Name string }

type kubeManager struct {
	framework *stub.Framework
	clientSet *stub.Cluster
	names     []string
	pods      []TestPod
}

// Prober is who a case is tried on.
type Prober = *kubeManager

func newKubeManager(f *stub.Framework, _ string) *kubeManager {
	return &kubeManager{framework: f, clientSet: f.ClientSet}
}

func (k *kubeManager) initializeClusterFromModel(ctx context.Context, model *Model) error {
	for _, namespace := range model.Namespaces {
		k.names = append(k.names, k.clientSet.CreateNamespace(namespace.Name).Name)
		for _, pod := range namespace.Pods {
			if _, err := k.clientSet.Pods(namespace.Name).Create(ctx, pod.KubePod(namespace.Name), meta.CreateOptions{}); err != nil {
				return err
			}
			k.pods = append(k.pods, TestPod{namespace.Name, pod.Name})
		}
	}
	return nil
}

func (k *kubeManager) AllPods() []TestPod { return k.pods }

func (k *kubeManager) AllPodStrings() []PodString {
	var all []PodString
	for _, pod := range k.pods {
		all = append(all, NewPodString(pod.Namespace, pod.Name))
	}
	return all
}

func (k *kubeManager) DNSDomain() string        { return "cluster.local" }
func (k *kubeManager) NamespaceNames() []string { return k.names }

func (k *kubeManager) getPod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	return k.clientSet.Pods(namespace).Get(ctx, name, meta.GetOptions{})
}

func (k *kubeManager) getNamespace(ctx context.Context, name string) (*core.Namespace, error) {
	return k.clientSet.Namespaces().Get(ctx, name, meta.GetOptions{})
}

func (k *kubeManager) createNetworkPolicy(ctx context.Context, namespace string, policy *net.NetworkPolicy) (*net.NetworkPolicy, error) {
	policy.Namespace = namespace
	return k.clientSet.NetworkPolicies(namespace).Create(ctx, policy, meta.CreateOptions{})
}

func (k *kubeManager) updateNetworkPolicy(ctx context.Context, namespace string, policy *net.NetworkPolicy) (*net.NetworkPolicy, error) {
	policy.Namespace = namespace
	return k.clientSet.NetworkPolicies(namespace).Update(ctx, policy, meta.UpdateOptions{})
}

func (k *kubeManager) cleanNetworkPolicies(ctx context.Context) error {
	_, _, policies := k.clientSet.All()
	for _, policy := range policies {
		if err := k.clientSet.NetworkPolicies(policy.Namespace).Delete(ctx, policy.Name, meta.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// Expectation is what the suite expects of a cluster: from each of the Pods, in order, to each of them on one port.
type Expectation struct {
	Case       string   `json:"case"`
	Namespaces []any    `json:"namespaces"`
	Pods       []any    `json:"pods"`
	Policies   []any    `json:"policies"`
	Protocol   string   `json:"protocol"`
	Port       int      `json:"port"`
	Table      []string `json:"table"`
}

var (
	running      string
	expectations []Expectation
)

// ProbePodToPodConnectivity observes what is expected, and writes it down when a case asks.
func ProbePodToPodConnectivity(k *kubeManager, pods []TestPod, _ string, test *TestCase) {
	var table []string
	for _, from := range pods {
		row := ""
		for _, to := range pods {
			one, other := NewPodString(from.Namespace, from.Name), NewPodString(to.Namespace, to.Name)
			reached := test.Reachability.Expected.Get(one.String(), other.String())
			test.Reachability.Observe(one, other, reached)
			row += map[bool]string{true: ".", false: "X"}[reached]
		}
		table = append(table, row)
	}
	if caller, _, _, _ := runtime.Caller(1); !strings.HasSuffix(runtime.FuncForPC(caller).Name(), "ValidateOrFail") {
		return
	}
	namespaces, all, policies := k.clientSet.All()
	slices.SortStableFunc(all, func(a, b *core.Pod) int {
		place := func(one *core.Pod) int { return slices.Index(pods, TestPod{one.Namespace, one.Name}) }
		return place(a) - place(b)
	})
	expectations = append(expectations, Expectation{
		running, slim(namespaces), slim(all), slim(policies), string(test.Protocol), test.ToPort, table,
	})
}

// What policies look at, of each object.
func slim[T any](objects []*T) []any {
	list := []any{}
	for _, one := range objects {
		text, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			panic(err)
		}
		metadata := object["metadata"].(map[string]any)
		delete(metadata, "creationTimestamp")
		delete(metadata, "generateName")
		if spec, ok := object["spec"].(map[string]any); ok && spec["containers"] != nil {
			ports := spec["containers"].([]any)[0].(map[string]any)["ports"]
			object["spec"] = map[string]any{"containers": []any{map[string]any{"ports": ports}}}
		} else {
			delete(object, "status")
		}
		list = append(list, object)
	}
	return list
}

// Record runs every case, and prints what they expect.
func Record(version string) {
	for _, one := range stub.Cases {
		running = one.Name
		one.Run()
	}
	fmt.Printf("{\"suite\":\"k8s.io/kubernetes %s test/e2e/network/netpol\",\n\"expectations\":[\n", version)
	for at, one := range expectations {
		text, err := json.Marshal(one)
		if err != nil {
			panic(err)
		}
		end := ","
		if at == len(expectations)-1 {
			end = ""
		}
		fmt.Printf("%s%s\n", text, end)
	}
	fmt.Println("]}")
	fmt.Fprintf(os.Stderr, "%d cases, %d expectations\n", len(stub.Cases), len(expectations))
}
