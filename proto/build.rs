//! Compiles the protos twice: typed for clients, and for the server with whole messages left as bytes.
//!
//! An embedded message and a `bytes` field look the same on the wire, so the second flavour is made by changing the
//! descriptor set: each field that holds a whole `weir.v1.Message` becomes `bytes`. What does not hold one is generated
//! once and shared by both.

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

const MESSAGE: &str = ".weir.v1.Message";
/// How servers read requests.
const REQUEST_CODEC: &str = "crate::codec::RequestCodec";
const PACKAGE: &str = "weir.v1";
const TEST_PACKAGE: &str = "weir.test.v1";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=weir");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let public = parse("weir/v1")?;
    let test = parse("weir/test/v1")?;

    fs::write(out.join("weir.v1.bin"), without_comments(&public).encode_to_vec())?;
    fs::write(out.join("weir.test.v1.bin"), without_comments(&test).encode_to_vec())?;

    let raw = with_messages_as_bytes(public.clone());
    let shared = names_without(&holders_of_messages(&public), &public);
    generate(public, &out.join("typed"), PACKAGE, false, &BTreeSet::new())?;
    generate(raw, &out.join("server"), PACKAGE, true, &shared)?;
    generate(test, &out.join("test"), TEST_PACKAGE, true, &BTreeSet::new())
}

/// All protos of one folder, with their comments.
fn parse(folder: &str) -> Result<FileDescriptorSet, Box<dyn Error>> {
    let mut files =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_source_info(true).include_imports(true).open_files(files)?;
    Ok(compiler.file_descriptor_set())
}

fn without_comments(set: &FileDescriptorSet) -> FileDescriptorSet {
    let mut set = set.clone();
    for file in &mut set.file {
        file.source_code_info = None;
    }
    set
}

fn with_messages_as_bytes(mut set: FileDescriptorSet) -> FileDescriptorSet {
    for field in set.file.iter_mut().flat_map(|file| &mut file.message_type).flat_map(|message| &mut message.field) {
        if field.type_name() == MESSAGE {
            field.set_type(Type::Bytes);
            field.type_name = None;
        }
    }
    set
}

/// The names of all messages that hold a whole `Message`, directly or through others.
fn holders_of_messages(set: &FileDescriptorSet) -> BTreeSet<String> {
    let mut holders = BTreeSet::new();
    loop {
        let found = messages(set)
            .filter(|(_, message)| {
                let mut fields = message.field.iter().map(|field| field.type_name());
                fields.any(|name| name == MESSAGE || holders.contains(name))
            })
            .map(|(name, _)| name)
            .collect::<BTreeSet<_>>();
        if found.len() == holders.len() {
            return holders;
        }
        holders = found;
    }
}

/// The names of all other messages and enums.
fn names_without(excluded: &BTreeSet<String>, set: &FileDescriptorSet) -> BTreeSet<String> {
    let enums = set.file.iter().flat_map(|file| file.enum_type.iter().map(|item| full_name(file, item.name())));
    messages(set).map(|(name, _)| name).chain(enums).filter(|name| !excluded.contains(name)).collect()
}

fn messages(set: &FileDescriptorSet) -> impl Iterator<Item = (String, &DescriptorProto)> {
    set.file.iter().flat_map(|file| file.message_type.iter().map(|item| (full_name(file, item.name()), item)))
}

fn full_name(file: &FileDescriptorProto, name: &str) -> String {
    format!(".{}.{name}", file.package())
}

/// Writes the Rust code of `set` to `folder`; the types in `shared` are those of the typed flavour.
fn generate(
    set: FileDescriptorSet,
    folder: &Path,
    package: &str,
    servers: bool,
    shared: &BTreeSet<String>,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let mut builder = tonic_prost_build::configure()
        .build_client(true)
        .build_server(servers)
        .bytes(".")
        .btree_map(".")
        .out_dir(folder);
    if servers {
        builder = builder.codec_path(REQUEST_CODEC);
    }
    for name in shared {
        let rust = name.replacen(&format!(".{package}."), "crate::v1::", 1);
        builder = builder.extern_path(name, rust);
    }
    builder.compile_fds(set)?;
    Ok(())
}
