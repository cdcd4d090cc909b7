// Kubernetes' own strategic merge of a Pod's spec, as a filter.
//
// In: one pair a line, {"base": …, "patch": …}, on stdin. Out: for each the merged spec, or null where the two cannot be merged, on stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func merged(line []byte) (result []byte, err error) {
	// Some patches that no API server would let through make the package panic.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	var pair struct{ Base, Patch json.RawMessage }
	if err := json.Unmarshal(line, &pair); err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(pair.Base, pair.Patch, corev1.PodSpec{})
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		result, err := merged(lines.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			result = []byte("null")
		}
		out.Write(append(result, '\n'))
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
