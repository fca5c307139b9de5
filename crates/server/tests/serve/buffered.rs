//! A connection for many requests, which is not read byte by byte.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::client::connect;

pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Connection {
        let stream = connect(address);
        stream.set_nodelay(true).expect("the connection is open");
        Connection(BufReader::new(stream))
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.get_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}
