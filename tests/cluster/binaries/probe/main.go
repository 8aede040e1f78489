// Command probe is what the test node's own image holds: the process that keeps a pod's sandbox open,
// a small server to be reached, and the attempts to reach, to resolve and to use up memory that tests
// of a network and of limits make. It is one static program, so the image needs no distribution.
//
//	probe pause             sleep until SIGTERM
//	probe serve ADDRESS     answer HTTP with "hello", and datagrams with what they say
//	probe dial HOST:PORT…   print "HOST:PORT open|refused|timeout|error" for each; 1 unless all are open
//	probe udp HOST:PORT…    the same for a datagram that has to be answered; serve answers those too
//	probe echo ADDRESS      print what becomes of a raw socket of frames, one of packets, and of an ICMP
//	                        echo to the address: "frames|packets|echo open|timeout|refused|error"
//	probe lookup NAME       print the addresses of a name
//	probe watch HOST:PORT   dial ten times a second; print the seconds since the start whenever it
//	                        becomes open, or something else than open
//	probe eat MIB           touch so much memory and keep it
//	probe fill FILE         write until the disk is full; print the MiB written and the error; 1
package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const patience = 1500 * time.Millisecond

func verdict(address string, within time.Duration) string {
	connection, err := net.DialTimeout("tcp", address, within)
	var network net.Error
	switch {
	case err == nil:
		connection.Close()
		return "open"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	default:
		return "error " + err.Error()
	}
}

func dial(addresses []string) int {
	code := 0
	for _, address := range addresses {
		found := verdict(address, patience)
		if found != "open" {
			code = 1
		}
		fmt.Println(address, found)
	}
	return code
}

func datagram(address string) string {
	connection, err := net.DialTimeout("udp", address, patience)
	if err == nil {
		defer connection.Close()
		connection.SetDeadline(time.Now().Add(patience))
		if _, err = connection.Write([]byte("hello\n")); err == nil {
			_, err = connection.Read(make([]byte, 16))
		}
	}
	return became(err)
}

func became(err error) string {
	var network net.Error
	switch {
	case err == nil:
		return "open"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "refused"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, syscall.EAGAIN):
		return "timeout"
	default:
		return "error " + err.Error()
	}
}

func udp(addresses []string) int {
	code := 0
	for _, address := range addresses {
		found := datagram(address)
		if found != "open" {
			code = 1
		}
		fmt.Println(address, found)
	}
	return code
}

// The kinds of socket by which a process gets past TCP and UDP.
func echo(address string) int {
	kinds := []struct {
		name               string
		domain, kind, what int
	}{
		{"frames", syscall.AF_PACKET, syscall.SOCK_RAW, 0x0300}, // ETH_P_ALL in network order
		{"packets", syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP},
	}
	code := 0
	for _, each := range kinds {
		handle, err := syscall.Socket(each.domain, each.kind, each.what)
		if err == nil {
			syscall.Close(handle)
		} else {
			code = 1
		}
		fmt.Println(each.name, became(err))
	}
	err := ping(net.ParseIP(address).To4())
	if err != nil {
		code = 1
	}
	fmt.Println("echo", became(err))
	return code
}

// An ICMP echo by a socket that needs no capability, where the kernel grants those to the group.
func ping(address net.IP) error {
	handle, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, syscall.IPPROTO_ICMP)
	if err != nil {
		return err
	}
	defer syscall.Close(handle)
	wait := syscall.NsecToTimeval(patience.Nanoseconds())
	if err := syscall.SetsockoptTimeval(handle, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	request := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // an echo request without data
	if err := syscall.Sendto(handle, request, 0, &syscall.SockaddrInet4{Addr: [4]byte(address)}); err != nil {
		return err
	}
	_, _, err = syscall.Recvfrom(handle, make([]byte, 64), 0)
	return err
}

func watch(address string) {
	start, last := time.Now(), ""
	for {
		found := verdict(address, 200*time.Millisecond)
		if last == "" || (found == "open") != (last == "open") {
			fmt.Printf("%.2f %s\n", time.Since(start).Seconds(), found)
		}
		last = found
		time.Sleep(100 * time.Millisecond)
	}
}

func serve(address string) int {
	if heard, err := net.ListenPacket("udp", address); err == nil {
		go func() {
			said := make([]byte, 64)
			for {
				if count, who, err := heard.ReadFrom(said); err == nil {
					heard.WriteTo(said[:count], who)
				}
			}
		}()
	}
	hello := func(answer http.ResponseWriter, _ *http.Request) { fmt.Fprintln(answer, "hello") }
	if err := http.ListenAndServe(address, http.HandlerFunc(hello)); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
	}
	return 1
}

func lookup(name string) int {
	found, err := net.LookupHost(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return 1
	}
	for _, address := range found {
		fmt.Println(address)
	}
	return 0
}

func eat(text string) int {
	mib, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		return 2
	}
	eaten := make([][]byte, 0, mib)
	for range mib {
		block := make([]byte, 1<<20)
		for at := 0; at < len(block); at += 4096 {
			block[at] = 1
		}
		eaten = append(eaten, block)
	}
	fmt.Println("eaten", len(eaten), "MiB")
	pause()
	return 0
}

func fill(path string) int {
	file, err := os.Create(path)
	written, block := 0, make([]byte, 1<<20)
	for err == nil {
		if _, err = file.Write(block); err == nil {
			written++
		}
	}
	fmt.Println(written, err)
	return 1
}

func pause() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}

func main() {
	command, rest := "pause", []string{}
	if len(os.Args) > 1 {
		command, rest = os.Args[1], os.Args[2:]
	}
	switch {
	case command == "pause":
		pause()
	case command == "dial" && len(rest) > 0:
		os.Exit(dial(rest))
	case command == "udp" && len(rest) > 0:
		os.Exit(udp(rest))
	case command == "echo" && len(rest) == 1 && net.ParseIP(rest[0]).To4() != nil:
		os.Exit(echo(rest[0]))
	case command == "serve" && len(rest) == 1:
		os.Exit(serve(rest[0]))
	case command == "lookup" && len(rest) == 1:
		os.Exit(lookup(rest[0]))
	case command == "watch" && len(rest) == 1:
		watch(rest[0])
	case command == "eat" && len(rest) == 1:
		os.Exit(eat(rest[0]))
	case command == "fill" && len(rest) == 1:
		os.Exit(fill(rest[0]))
	default:
		fmt.Fprintln(os.Stderr, "probe: pause, serve ADDRESS, dial HOST:PORT…, udp HOST:PORT…, echo ADDRESS, lookup NAME, watch HOST:PORT, eat MIB or fill FILE")
		os.Exit(2)
	}
}
